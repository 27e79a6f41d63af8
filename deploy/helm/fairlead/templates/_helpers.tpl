{{- define "fairlead.name" -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- end -}}

{{- define "fairlead.selector" -}}
app.kubernetes.io/name: fairlead
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "fairlead.labels" -}}
{{ include "fairlead.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "fairlead.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
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

{{/* What both containers have alike. */}}
{{- define "fairlead.container" -}}
image: {{ include "fairlead.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
env:
  - name: NODE_NAME
    valueFrom:
      fieldRef:
        fieldPath: spec.nodeName
resources: {{- toYaml .Values.resources | nindent 2 }}
{{- end -}}
