{{/* Names and labels of the operator's objects. */}}

{{- define "operatorstandin.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "operatorstandin.selector" -}}
app.kubernetes.io/component: gpu-operator
app: gpu-operator
{{- end }}
