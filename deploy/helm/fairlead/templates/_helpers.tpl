{{- define "fairlead.name" -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- end -}}

{{- define "fairlead.selector" -}}
app.kubernetes.io/name: {{ .Values.shadow | ternary "fairlead-shadow" "fairlead" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "fairlead.labels" -}}
{{ include "fairlead.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* A digest is what is pulled; the tag beside it is for those who read. */}}
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

{{/* config.conf: what the chart's own values say, and the fields of "config" beside them. */}}
{{- define "fairlead.config" -}}
{{- $own := dict
  "apiVersion" "kubeproxy.config.k8s.io/v1alpha1"
  "kind" "KubeProxyConfiguration"
  "mode" .Values.mode
  "clusterCIDR" (join "," .Values.clusterCIDRs)
  "metricsBindAddress" .Values.metricsBindAddress
  "clientConnection" (dict "kubeconfig" "/etc/fairlead/kubeconfig.conf")
  "logging" (dict "format" .Values.logFormat "verbosity" .Values.verbosity)
-}}
{{- mergeOverwrite (deepCopy .Values.config) $own | toYaml }}
---
{{ dict "apiVersion" "fairlead.dev/v1alpha1" "kind" "FairleadConfiguration" "multiCNI" .Values.multiCNI | toYaml }}
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
{{- $port := regexFind "[0-9]+$" .Values.metricsBindAddress -}}
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
