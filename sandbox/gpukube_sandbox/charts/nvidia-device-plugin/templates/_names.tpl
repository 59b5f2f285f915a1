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

{{/* The release name is not quoted, so the API server rejects a release named "y" or "1". */}}
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

{{/* The ConfigMap that the pods mount; empty if there is none. */}}
{{- define "standin.configMap" -}}
{{- if .Values.config.name -}}
{{ .Values.config.name }}
{{- else if .Values.config.map -}}
{{ include "standin.fullname" . }}-configs
{{- end -}}
{{- end }}

{{/* "yes" if a MIG strategy other than none is possible, by value or by any config that the pods can choose. */}}
{{- define "standin.mayUseMig" -}}
{{- if .Values.migStrategy -}}
{{ ternary "" "yes" (eq .Values.migStrategy "none") }}
{{- else if include "standin.configMap" . -}}
yes
{{- end -}}
{{- end }}

{{/* "yes" if the pods need the SYS_ADMIN capability. */}}
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

{{/* "yes" if the pods have a service account: always, except in 0.17, whose pods read nodes only for a config. */}}
{{- define "standin.hasAccount" -}}
{{ ternary "yes" "" (or (ne "" (include "standin.configMap" .)) (eq "" (include "standin.first" .))) }}
{{- end }}
