{{- /* Names, labels and images, which all templates share. */ -}}

{{- define "gwproxy.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* A name of Helm may have dots, and that of a Service may not. */ -}}
{{- define "gwproxy.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) }}
{{- default $full .Values.fullnameOverride | replace "." "-" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* The name of the webhook's objects keeps its end when the release has a long name. */ -}}
{{- define "gwproxy.webhookName" -}}
{{- include "gwproxy.fullname" . | trunc 55 | trimSuffix "-" }}-webhook
{{- end }}

{{- /* Cluster-scoped objects are named after the namespace, so that releases do not meet. */ -}}
{{- define "gwproxy.clusterName" -}}
gwproxy-{{ .Release.Namespace }}
{{- end }}

{{- define "gwproxy.serviceAccountName" -}}
{{- default (.Values.serviceAccount.create | ternary (include "gwproxy.fullname" .) "default") .Values.serviceAccount.name }}
{{- end }}

{{- define "gwproxy.className" -}}
{{- default "gwproxy" .Values.gatewayClassName }}
{{- end }}

{{- define "gwproxy.controllerName" -}}
{{- default "gwproxy.dev/gwproxy" .Values.controllerName }}
{{- end }}

{{- define "gwproxy.selectorLabels" -}}
gwproxy: gwproxy
app.kubernetes.io/name: {{ include "gwproxy.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* Other labels than the controller's, or the controller's Service would lead to the webhook. */ -}}
{{- define "gwproxy.webhookSelectorLabels" -}}
gwproxy: webhook
app.kubernetes.io/name: {{ include "gwproxy.name" . | trunc 55 | trimSuffix "-" }}-webhook
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gwproxy.commonLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "gwproxy.labels" -}}
{{ include "gwproxy.selectorLabels" . }}
{{ include "gwproxy.commonLabels" . }}
{{- end }}

{{- define "gwproxy.webhookLabels" -}}
{{ include "gwproxy.webhookSelectorLabels" . }}
{{ include "gwproxy.commonLabels" . }}
{{- end }}

{{- /* Tags of images: a bare version, such as that of the chart, gets a "v". */ -}}
{{- define "gwproxy.tag" -}}
{{- regexMatch "^[0-9]+\\.[0-9]+" . | ternary (printf "v%s" .) . }}
{{- end }}

{{- define "gwproxy.controllerTag" -}}
{{- include "gwproxy.tag" (coalesce .Values.controller.image.tag .Values.image.tag .Chart.AppVersion) }}
{{- end }}

{{- define "gwproxy.proxyTag" -}}
{{- include "gwproxy.tag" (coalesce .Values.proxy.image.tag .Values.image.tag .Chart.AppVersion) }}
{{- end }}

{{- define "gwproxy.controllerImage" -}}
{{- with default .Values.image.registry .Values.controller.image.registry }}{{ . }}/{{ end }}
{{- .Values.controller.image.repository }}:{{ include "gwproxy.controllerTag" . }}
{{- end }}

{{- define "gwproxy.pullPolicy" -}}
{{- default .Values.image.pullPolicy .Values.controller.image.pullPolicy }}
{{- end }}

{{- define "gwproxy.containerSecurity" -}}
{{- if .Values.securityContext }}
{{- toYaml .Values.securityContext }}
{{- else -}}
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
readOnlyRootFilesystem: true
runAsNonRoot: true
seccompProfile:
  type: RuntimeDefault
{{- end }}
{{- end }}

{{- /* Fields that the pods of controller and webhook share. */ -}}
{{- define "gwproxy.podFields" -}}
# Variables of Services, such as GWPROXY_PORT, would look like settings.
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.controller.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Bytes of a Kubernetes quantity such as 512Mi or 1G; 0 for one that is not known. */ -}}
{{- define "gwproxy.bytes" -}}
{{- $text := toString . }}
{{- $units := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 }}
{{- $number := regexFind "^[0-9]+(\\.[0-9]+)?" $text }}
{{- $unit := trimPrefix $number $text }}
{{- if and $number (hasKey $units $unit) }}{{ mulf (float64 $number) (get $units $unit) | int64 }}{{ else }}0{{ end }}
{{- end }}
