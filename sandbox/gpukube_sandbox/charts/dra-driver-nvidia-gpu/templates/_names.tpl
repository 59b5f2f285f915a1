{{/* Names, labels, and the API version of the driver's objects. */}}

{{- define "drastandin.name" -}}
{{ .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "drastandin.account" -}}
{{- $full := .Values.fullnameOverride }}
{{- if not $full }}
{{- $name := .Values.nameOverride | default .Chart.Name }}
{{- $full = contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) }}
{{- end }}
{{- $made := printf "%s-service-account" ($full | trunc 63 | trimSuffix "-") }}
{{- .Values.serviceAccount.name | default (.Values.serviceAccount.create | ternary $made "default") }}
{{- end }}

{{- define "drastandin.namespace" -}}
{{ .Values.namespaceOverride | default .Release.Namespace }}
{{- end }}

{{- define "drastandin.podLabels" -}}
app.kubernetes.io/name: {{ include "drastandin.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "drastandin.labels" -}}
helm.sh/chart: {{ printf "%s-%s" (.Values.nameOverride | default .Chart.Name) .Chart.Version | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "drastandin.podLabels" . }}
{{- end }}

{{/* Takes top (the root) and part (the component). */}}
{{- define "drastandin.selector" -}}
{{- with .top.Values.selectorLabelsOverride }}
{{- toYaml . }}
{{- else -}}
{{ .top.Values.nameOverride | default .top.Chart.Name }}-component: {{ .part }}
{{- end }}
{{- end }}

{{- define "drastandin.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default (printf "v%s" .Chart.AppVersion) }}
{{- end }}

{{- define "drastandin.api" -}}
{{- $found := .Values.resourceApiVersion }}
{{- range $version := list "v1" "v1beta2" "v1beta1" }}
{{- $served := printf "resource.k8s.io/%s" $version }}
{{- if and (not $found) ($.Capabilities.APIVersions.Has $served) }}
{{- $found = $served }}
{{- end }}
{{- end }}
{{- $found }}
{{- end }}

{{- define "drastandin.gates" -}}
{{- range $name, $on := .Values.featureGates }}{{ $name }}={{ $on }},{{ end }}
{{- end }}

{{- define "drastandin.pullSecrets" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The namespaces whose ComputeDomain daemons the controller may create, separated by commas. */}}
{{- define "drastandin.namespaces" -}}
{{- $found := list (include "drastandin.namespace" .) }}
{{- range .Values.controller.containers.computeDomain.env }}
{{- if eq .name "ADDITIONAL_NAMESPACES" }}
{{- range splitList "," (.value | default "") }}
{{- $found = append $found (trim .) }}
{{- end }}
{{- end }}
{{- end }}
{{- join "," (compact (uniq $found)) }}
{{- end }}

{{/* Placement of a pod: takes values with nodeSelector, affinity, and tolerations. */}}
{{- define "drastandin.placement" -}}
{{- range $key := list "nodeSelector" "affinity" "tolerations" }}
{{- with index $ $key }}
{{ $key }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}
