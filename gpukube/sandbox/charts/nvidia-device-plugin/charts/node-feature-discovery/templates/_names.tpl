{{/* Names and labels of the discovery's objects. */}}

{{- define "nfdstandin.fullname" -}}
{{- $base := .Values.nameOverride | default .Chart.Name -}}
{{- $joined := ternary .Release.Name (printf "%s-%s" .Release.Name $base) (contains $base .Release.Name) -}}
{{ .Values.fullnameOverride | default $joined | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "nfdstandin.namespace" -}}
{{ .Values.namespaceOverride | default .Release.Namespace }}
{{- end }}

{{- define "nfdstandin.selector" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "nfdstandin.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "nfdstandin.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "nfdstandin.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Account of a role. Called with (dict "top" $ "role" "worker"); the master's is the bare name. */}}
{{- define "nfdstandin.account" -}}
{{- $given := (index .top.Values .role).serviceAccount.name -}}
{{- $full := include "nfdstandin.fullname" .top -}}
{{ $given | default (ternary $full (printf "%s-%s" $full .role) (eq .role "master")) }}
{{- end }}

{{- define "nfdstandin.container" -}}
securityContext:
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
  readOnlyRootFilesystem: true
  runAsNonRoot: true
image: {{ include "nfdstandin.image" .top | quote }}
imagePullPolicy: {{ .top.Values.image.pullPolicy }}
resources:
  {{- toYaml (index .top.Values (ternary "master" .role (eq .role "prune"))).resources | nindent 2 }}
{{- if ne .role "prune" }}
env:
  - name: NODE_NAME
    valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
  {{- if eq .role "worker" }}
  - name: POD_NAME
    valueFrom: {fieldRef: {fieldPath: metadata.name}}
  - name: POD_UID
    valueFrom: {fieldRef: {fieldPath: metadata.uid}}
  {{- end }}
{{- end }}
{{- end }}

{{- define "nfdstandin.placement" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
