{{/* Shared parts of the pods of the three DaemonSets. Called with (dict "top" $ "prefix" "..." ...). */}}

{{- define "standin.computedSecurity" -}}
{{- if include "standin.needsSysAdmin" . -}}
capabilities:
  add: [SYS_ADMIN]
{{- else -}}
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
{{- end -}}
{{- end }}

{{- define "standin.pluginSecurity" -}}
{{- if .Values.securityContext -}}
{{ toYaml .Values.securityContext }}
{{- else if .Values.compatWithCPUManager -}}
privileged: true
{{- else -}}
{{ include "standin.computedSecurity" . }}
{{- end -}}
{{- end }}

{{- define "standin.gfdSecurity" -}}
{{- if .Values.gfd.securityContext -}}
{{ toYaml .Values.gfd.securityContext }}
{{- else -}}
{{ include "standin.computedSecurity" . }}
{{- end -}}
{{- end }}

{{/* Start of a pod template: labels, and a checksum that restarts the pods when an embedded config changes. */}}
{{- define "standin.podMeta" -}}
labels:
  {{- include "standin.podLabels" . | nindent 2 }}
{{- $notes := deepCopy .Values.podAnnotations -}}
{{- if and .Values.config.map (not (hasKey $notes "checksum/config")) -}}
{{- $notes = set $notes "checksum/config" (include (print .Template.BasePath "/configs.yaml") . | sha256sum) -}}
{{- end }}
annotations:
  {{- toYaml $notes | nindent 2 }}
{{- end }}

{{- define "standin.podHead" -}}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- if include "standin.hasAccount" . }}
serviceAccountName: {{ include "standin.fullname" . }}-service-account
{{- end }}
{{- end }}

{{- define "standin.placement" -}}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* config-manager, as init container (once) or as sidecar (permanently). config.default stays unquoted. */}}
{{- define "standin.configManager" -}}
- name: {{ .prefix }}-{{ ternary "init" "sidecar" .once }}
  image: {{ include "standin.image" .top }}
  command: [config-manager]
  env:
    - {name: ONESHOT, value: {{ .once | quote }}}
    - {name: KUBECONFIG, value: ""}
    - name: NODE_NAME
      valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
    - {name: NODE_LABEL, value: nvidia.com/device-plugin.config}
    - {name: CONFIG_FILE_SRCDIR, value: /available-configs}
    - {name: CONFIG_FILE_DST, value: /config/config.yaml}
    - name: DEFAULT_CONFIG
      value: {{ .top.Values.config.default }}
    - name: FALLBACK_STRATEGIES
      value: {{ join "," .top.Values.config.fallbackStrategies }}
    - {name: SEND_SIGNAL, value: {{ not .once | quote }}}
    - {name: SIGNAL, value: {{ ternary "" "1" .once | quote }}}
    - {name: PROCESS_TO_SIGNAL, value: {{ ternary "" .process .once | quote }}}
  volumeMounts:
    {{- include "standin.configMounts" . | nindent 4 }}
  {{- with .security }}
  securityContext:
    {{- . | nindent 4 }}
  {{- end }}
{{- end }}

{{- define "standin.configMounts" -}}
- {name: available-configs, mountPath: /available-configs}
- {name: config, mountPath: /config}
{{- end }}

{{- define "standin.configVolumes" -}}
- name: available-configs
  configMap: {name: {{ include "standin.configMap" . }}}
- name: config
  emptyDir: {}
{{- end }}

{{/* Common environment of plugin, GFD, and MPS daemon. */}}
{{- define "standin.commonEnv" -}}
{{- if kindIs "string" .Values.migStrategy }}
- {name: MIG_STRATEGY, value: {{ .Values.migStrategy }}}
{{- end }}
{{- if include "standin.configMap" . }}
- {name: CONFIG_FILE, value: /config/config.yaml}
{{- end }}
{{- if include "standin.mayUseMig" . }}
- {name: NVIDIA_MIG_MONITOR_DEVICES, value: all}
{{- end }}
{{- end }}
