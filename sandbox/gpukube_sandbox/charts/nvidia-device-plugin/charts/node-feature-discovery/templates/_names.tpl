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

{{/* Service account of a role. Called with (dict "top" $ "role" "worker"); the master's is the name without suffix. */}}
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
{{- if not (or (include "nfdstandin.first" .top) (and (eq .role "prune") (include "nfdstandin.former" .top))) }}
resources:
  {{- toYaml (index .top.Values (ternary "master" .role (eq .role "prune"))).resources | nindent 2 }}
{{- end }}
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

{{/* "yes" for the discovery in NVIDIA's chart up to 0.19: gRPC probes, and a separate port for metrics. */}}
{{- define "nfdstandin.former" -}}
{{ ternary "yes" "" (semverCompare "<0.18.0-0" .Chart.Version) }}
{{- end }}

{{/* "yes" for the discovery in NVIDIA's chart up to 0.17: workers call the master, and there is no cleanup. */}}
{{- define "nfdstandin.first" -}}
{{ ternary "yes" "" (semverCompare "<0.16.0-0" .Chart.Version) }}
{{- end }}

{{/* Ports and probes of a role. Called with (dict "top" $ "role" "worker"). */}}
{{- define "nfdstandin.health" -}}
{{- if include "nfdstandin.first" .top }}
{{- if eq .role "master" }}
ports:
  - {containerPort: 8080, name: grpc}
  - {containerPort: 8081, name: metrics}
livenessProbe:
  grpc: {port: 8080}
  initialDelaySeconds: 10
  periodSeconds: 10
readinessProbe:
  grpc: {port: 8080}
  initialDelaySeconds: 5
  periodSeconds: 10
  failureThreshold: 10
{{- else }}
ports:
  - {containerPort: 8081, name: metrics}
{{- end }}
{{- else }}
{{- $former := include "nfdstandin.former" .top -}}
{{- $probe := ternary (dict "grpc" (dict "port" 8082)) (dict "httpGet" (dict "path" "/healthz" "port" "http")) (eq $former "yes") -}}
{{- $late := dict "initialDelaySeconds" 10 -}}
{{- $soon := dict "initialDelaySeconds" 5 -}}
{{- if $former }}
ports:
  - {containerPort: 8081, name: metrics}
  {{- if ne .role "gc" }}
  - {containerPort: 8082, name: health}
  {{- end }}
{{- else }}
ports:
  - {containerPort: 8080, name: http}
{{- end }}
{{- if eq .role "master" }}
startupProbe:
  {{- toYaml (merge (dict "failureThreshold" 30) $probe) | nindent 2 }}
livenessProbe:
  {{- toYaml $probe | nindent 2 }}
readinessProbe:
  {{- toYaml (merge (dict "failureThreshold" 10) $probe) | nindent 2 }}
{{- else if or (eq .role "worker") (not $former) }}
livenessProbe:
  {{- toYaml (merge $late $probe) | nindent 2 }}
readinessProbe:
  {{- toYaml (merge $soon (ternary (dict "failureThreshold" 10) dict (eq .role "worker")) $probe) | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}
