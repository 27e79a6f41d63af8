{{- define "fairlead.name" -}}
{{- $name := .Release.Name -}}
{{- with .Values.nameOverride }}{{ $name = printf "%s-%s" $name . }}{{ end -}}
{{- .Values.fullnameOverride | default $name | trunc 53 | trimSuffix "-" -}}
{{- end -}}

{{- define "fairlead.selector" -}}
app.kubernetes.io/name: {{ .Values.shadow | ternary "fairlead-shadow" "fairlead" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "fairlead.labels" -}}
{{ include "fairlead.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.serviceProxyName }}
fairlead.dev/service-proxy-name: {{ . | quote }}
{{- end }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Of the controller, which is not an agent: tools find agents by fairlead's name. */}}
{{- define "fairlead.controllerSelector" -}}
app.kubernetes.io/name: fairlead-controller
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "fairlead.controllerLabels" -}}
{{ include "fairlead.controllerSelector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "fairlead.metricsBindAddress" -}}
{{ .Values.metricsBindAddress | default (printf "127.0.0.1:%d" (ternary 10249 10349 (empty .Values.serviceProxyName))) }}
{{- end -}}

{{/* Of a shadow it is the metrics' port: it has no other. */}}
{{- define "fairlead.healthzPort" -}}
{{- if .Values.shadow }}{{ include "fairlead.metricsPort" . }}{{ else -}}
{{ .Values.healthzPort | default (ternary 10256 10356 (empty .Values.serviceProxyName)) }}
{{- end }}
{{- end -}}

{{/* The digest decides what is pulled; the tag next to it is for readers. */}}
{{- define "fairlead.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- with .Values.image.digest }}@{{ . }}{{ end }}
{{- end -}}

{{- define "fairlead.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "fairlead.name" .) }}
{{- else -}}
{{ required "serviceAccount.name is required where serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end -}}
{{- end -}}

{{/* config.conf: what the chart's own values say, and the fields of "config" in addition. */}}
{{- define "fairlead.config" -}}
{{- if and .Values.serviceProxyName (ne .Values.mode "nftables") -}}
{{- fail (printf "serviceProxyName: alongside another proxy an agent runs in nftables mode only; mode is %s" .Values.mode) -}}
{{- end -}}
{{- if and .Values.serviceNetwork (not .Values.serviceProxyName) -}}
{{- fail "serviceNetwork: services of pods' secondary networks are for an agent with a name; set serviceProxyName" -}}
{{- end -}}
{{- if and .Values.serviceProxyName .Values.shadow -}}
{{- fail "serviceProxyName: a shadow compares with the nodes' first proxy, which does not serve what is labeled; leave one of them out" -}}
{{- end -}}
{{- $own := dict
  "apiVersion" "kubeproxy.config.k8s.io/v1alpha1"
  "kind" "KubeProxyConfiguration"
  "mode" .Values.mode
  "clusterCIDR" (join "," .Values.clusterCIDRs)
  "metricsBindAddress" (include "fairlead.metricsBindAddress" .)
  "clientConnection" (dict "kubeconfig" "/etc/fairlead/kubeconfig.conf")
  "logging" (dict "format" .Values.logFormat "verbosity" .Values.verbosity)
-}}
{{- with .Values.healthzPort }}{{ $_ := set $own "healthzBindAddress" (printf "0.0.0.0:%v" .) }}{{ end -}}
{{- $fairlead := dict "apiVersion" "fairlead.dev/v1alpha1" "kind" "FairleadConfiguration" "multiCNI" (include "fairlead.multiCNI" . | fromJson) -}}
{{- with .Values.serviceProxyName }}{{ $_ := set $fairlead "serviceProxyName" . }}{{ end -}}
{{- if .Values.serviceNetwork }}{{ $_ := set $fairlead "serviceNetwork" true }}{{ end -}}
{{- mergeOverwrite (deepCopy .Values.config) $own | toYaml }}
---
{{ toYaml $fairlead }}
{{- end -}}

{{/* What the ConfigMap has in it. */}}
{{- define "fairlead.configData" -}}
config.conf: |
  {{- include "fairlead.config" . | nindent 2 }}
kubeconfig.conf: |
  apiVersion: v1
  kind: Config
  clusters:
    - name: default
      cluster:
        certificate-authority: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
        server: {{ required "apiServer is required: the URL of the API server itself, such as https://192.0.2.1:6443" .Values.apiServer | quote }}
  contexts:
    - name: default
      context:
        cluster: default
        namespace: default
        user: default
  current-context: default
  users:
    - name: default
      user:
        tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
{{- end -}}

{{/*
Another name for other contents: agents end when their configuration file changes, and the kubelet changes the files of all
nodes at once. So a pod keeps what it began with, and a change is a new pod, as many at once as maxUnavailable says.
*/}}
{{- define "fairlead.configMapName" -}}
{{ include "fairlead.name" . }}-{{ include "fairlead.configData" . | sha256sum | trunc 10 }}
{{- end -}}

{{/* Where metrics are served: a shadow leaves kube-proxy's own port to it. */}}
{{- define "fairlead.metricsPort" -}}
{{- $port := include "fairlead.metricsBindAddress" . | regexFind "[0-9]+$" -}}
{{- if and .Values.shadow (eq $port "10249") }}10449{{ else }}{{ $port }}{{ end -}}
{{- end -}}

{{/* What both containers have alike. */}}
{{- define "fairlead.container" -}}
image: {{ include "fairlead.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
env:
  - name: NODE_NAME
    valueFrom:
      fieldRef:
        fieldPath: spec.nodeName
  {{- with .Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
resources: {{- toYaml .Values.resources | nindent 2 }}
{{- end -}}

{{/* What an update of the DaemonSet does. */}}
{{- define "fairlead.updateStrategy" -}}
type: {{ .Values.updateStrategy }}
{{- if eq .Values.updateStrategy "RollingUpdate" }}
rollingUpdate:
  maxUnavailable: {{ .Values.maxUnavailable }}
{{- end }}
{{- end -}}
