{{- /*
The environment of the controller: what the chart sets, without the names in controller.extraEnv, then those, sorted. A
name appears once, because server-side apply refuses duplicates.
*/ -}}
{{- define "gwproxy.environment" -}}
{{- $own := include "gwproxy.ownEnvironment" . | fromYamlArray }}
{{- range $own }}
{{- if not (hasKey (default dict $.Values.controller.extraEnv) .name) }}
{{ list . | toYaml }}
{{- end }}
{{- end }}
{{- range $name, $given := .Values.controller.extraEnv }}
{{- if kindIs "map" $given }}
{{- $keys := list }}
{{- range list "value" "valueFrom" }}{{ if hasKey $given . }}{{ $keys = append $keys . }}{{ end }}{{ end }}
{{- if ne (len $keys) 1 }}
{{- fail (printf "controller.extraEnv.%s: needs either value or valueFrom" $name) }}
{{- end }}
{{- if and (hasKey $given "valueFrom") (not $given.valueFrom) }}
{{- fail (printf "controller.extraEnv.%s.valueFrom: must not be empty" $name) }}
{{- end }}
{{- if hasKey $given "value" }}
- name: {{ $name }}
  value: {{ toString $given.value | quote }}
{{- else }}
- name: {{ $name }}
  valueFrom:
    {{- toYaml $given.valueFrom | nindent 4 }}
{{- end }}
{{- else }}
- name: {{ $name }}
  value: {{ toString $given | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- define "gwproxy.ownEnvironment" -}}
{{- $refs := default dict .Values.gatewayClassParametersRefs }}
{{- range $class, $ref := $refs }}
{{- if not (and $ref.name $ref.namespace) }}
{{- fail (printf "gatewayClassParametersRefs.%s: needs name and namespace" $class) }}
{{- end }}
{{- if ne $class (include "gwproxy.className" $) }}
{{- fail (printf "gatewayClassParametersRefs.%s: the release makes the GatewayClass %s only; set spec.parametersRef of others in the objects themselves" $class (include "gwproxy.className" $)) }}
{{- end }}
{{- end }}
- name: POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: POD_UID
  valueFrom:
    fieldRef:
      fieldPath: metadata.uid
- name: GWPROXY_DEPLOYMENT_NAME
  value: {{ include "gwproxy.fullname" . }}
- name: GWPROXY_LOG_LEVEL
  value: {{ .Values.controller.logLevel | quote }}
- name: GWPROXY_CONTROLLER_NAME
  value: {{ include "gwproxy.controllerName" . }}
- name: GWPROXY_CLASS_NAME
  value: {{ include "gwproxy.className" . }}
- name: GWPROXY_CREATE_GATEWAY_CLASS
  value: {{ not .Values.gatewayClass.create | quote }}
{{- with $refs }}
- name: GWPROXY_GATEWAY_CLASS_PARAMETERS_REFS
  value: {{ toJson . | quote }}
{{- end }}
{{- with .Values.discoveryNamespaceSelectors }}
- name: GWPROXY_DISCOVERY_NAMESPACE_SELECTORS
  value: {{ toJson . | quote }}
{{- end }}
- name: GWPROXY_XDS_MODE
  value: {{ .Values.controller.xds.mode }}
- name: GWPROXY_XDS_SERVICE_NAME
  value: {{ include "gwproxy.fullname" . }}
- name: GWPROXY_XDS_SERVICE_PORT
  value: {{ .Values.controller.service.ports.agwGrpc | quote }}
- name: GWPROXY_PROXY_IMAGE_REGISTRY
  value: {{ default .Values.image.registry .Values.proxy.image.registry | quote }}
- name: GWPROXY_PROXY_IMAGE_REPOSITORY
  value: {{ .Values.proxy.image.repository }}
- name: GWPROXY_PROXY_IMAGE_TAG
  value: {{ include "gwproxy.proxyTag" . | quote }}
{{- $secrets := list }}
{{- range hasKey .Values.proxy "imagePullSecrets" | ternary .Values.proxy.imagePullSecrets .Values.imagePullSecrets }}
{{- $secrets = append $secrets .name }}
{{- end }}
{{- with $secrets }}
- name: GWPROXY_PROXY_IMAGE_PULL_SECRETS
  value: {{ toJson . | quote }}
{{- end }}
{{- with .Values.proxy.ambientIdentityHosts }}
- name: GWPROXY_AMBIENT_IDENTITY_HOSTS
  value: {{ join "," . | quote }}
{{- end }}
- name: GWPROXY_ENABLE_INFERENCE
  value: {{ .Values.inferenceExtension.enabled | quote }}
- name: GWPROXY_ENABLE_MODELS
  value: {{ .Values.gwModels.enabled | quote }}
- name: GWPROXY_MESH_AUTO_ENABLED
  value: {{ .Values.mesh.autoEnabled | quote }}
- name: GWPROXY_MESH_NAMESPACE
  value: {{ default "istio-system" .Values.mesh.namespace }}
{{- with .Values.mesh.revision }}
- name: GWPROXY_MESH_REVISION
  value: {{ . | quote }}
{{- end }}
{{- with .Values.mesh.caAddress }}
- name: GWPROXY_MESH_CA_ADDRESS
  value: {{ . | quote }}
{{- end }}
{{- with .Values.mesh.clusterId }}
- name: GWPROXY_MESH_CLUSTER_ID
  value: {{ . | quote }}
{{- end }}
{{- with .Values.mesh.network }}
- name: GWPROXY_MESH_NETWORK
  value: {{ . | quote }}
{{- end }}
{{- $limit := dig "limits" "memory" "" (default dict .Values.resources) }}
{{- $bytes := include "gwproxy.bytes" $limit | int64 }}
{{- if gt $bytes 0 }}
# Three quarters of the limit of memory; the rest is for buffers and code.
- name: NODE_OPTIONS
  value: --max-old-space-size={{ div (mul $bytes 3) 4194304 }}
{{- end }}
{{- end }}
