{{/* Names and labels. */}}

{{- define "standin.name" -}}
{{ .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "standin.fullname" -}}
{{- $base := .Values.nameOverride | default .Chart.Name -}}
{{- $joined := ternary .Release.Name (printf "%s-%s" .Release.Name $base) (contains $base .Release.Name) -}}
{{ .Values.fullnameOverride | default $joined | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "standin.namespace" -}}
{{ .Values.namespaceOverride | default .Release.Namespace }}
{{- end }}

{{/* The release name is not quoted, so a release called "y" or "1" does not get past the API server. */}}
{{- define "standin.podLabels" -}}
app.kubernetes.io/name: {{ include "standin.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- with .Values.selectorLabelsOverride }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "standin.selector" -}}
{{- with .Values.selectorLabelsOverride }}{{ toYaml . }}{{ else }}{{ include "standin.podLabels" . }}{{ end }}
{{- end }}

{{- define "standin.labels" -}}
helm.sh/chart: {{ printf "%s-%s" (.Values.nameOverride | default .Chart.Name) .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "standin.podLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "standin.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default (printf "v%s" .Chart.AppVersion) }}
{{- end }}

{{/* The ConfigMap the pods mount; empty without one. */}}
{{- define "standin.configMap" -}}
{{- if .Values.config.name -}}
{{ .Values.config.name }}
{{- else if .Values.config.map -}}
{{ include "standin.fullname" . }}-configs
{{- end -}}
{{- end }}

{{/* "yes" when a MIG strategy other than none is possible: by value, or by any config the pods might choose. */}}
{{- define "standin.mayUseMig" -}}
{{- if .Values.migStrategy -}}
{{ ternary "" "yes" (eq .Values.migStrategy "none") }}
{{- else if include "standin.configMap" . -}}
yes
{{- end -}}
{{- end }}

{{/* "yes" when the pods need the SYS_ADMIN capability. */}}
{{- define "standin.needsSysAdmin" -}}
{{- if include "standin.mayUseMig" . -}}
yes
{{- else if .Values.deviceListStrategy -}}
{{ ternary "yes" "" (contains "volume-mounts" .Values.deviceListStrategy) }}
{{- else if include "standin.configMap" . -}}
yes
{{- end -}}
{{- end }}

{{/* "yes" for 0.17: its discovery writes a file for NFD's worker, and its MPS daemon shares the pod's processes. */}}
{{- define "standin.first" -}}
{{ ternary "yes" "" (semverCompare "<0.18.0-0" .Chart.Version) }}
{{- end }}

{{/* "yes" where the pods have an account: always, but in 0.17, whose pods read their nodes for a config only. */}}
{{- define "standin.hasAccount" -}}
{{ ternary "yes" "" (or (ne "" (include "standin.configMap" .)) (eq "" (include "standin.first" .))) }}
{{- end }}
