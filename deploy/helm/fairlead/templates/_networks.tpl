{{/* What a role has to let an agent read of each source, in addition to system:node-proxier. */}}
{{- define "fairlead.networkRules" -}}
kube-ovn-subnets: [{ apiGroups: [kubeovn.io], resources: [subnets, vpcs] }]
calico-ippools: [{ apiGroups: [crd.projectcalico.org, projectcalico.org], resources: [ippools] }]
cilium-pools: [{ apiGroups: [cilium.io], resources: [ciliumpodippools] }]
cilium-nodes: [{ apiGroups: [cilium.io], resources: [ciliumnodes] }]
ovn-kubernetes-nodes: []
flannel: [{ apiGroups: [""], resources: [configmaps], resourceNames: [kube-flannel-cfg] }]
antrea-ippools: [{ apiGroups: [crd.antrea.io], resources: [ippools] }]
spiderpool: [{ apiGroups: [spiderpool.spidernet.io], resources: [spiderippools] }]
nodes: []
{{- end -}}

{{/* The rules for the sources that are configured, as a YAML list; the verbs are the same everywhere. */}}
{{- define "fairlead.roleRules" -}}
{{- $known := include "fairlead.networkRules" . | fromYaml -}}
{{- $rules := list -}}
{{- range concat .Values.multiCNI.excludeCIDRsFrom .Values.multiCNI.clusterCIDRsFrom -}}
  {{- $source := ternary (dict "source" .) . (kindIs "string" .) -}}
  {{- if eq $source.source "custom" -}}
    {{- $parts := splitn "." 3 $source.resource -}}
    {{- $rule := dict "apiGroups" (list (default "" $parts._2)) "resources" (list $parts._0) -}}
    {{- if $source.name -}}{{- $_ := set $rule "resourceNames" (list $source.name) -}}{{- end -}}
    {{- $rules = append $rules $rule -}}
  {{- else if and (eq $source.source "flannel") $source.name -}}
    {{- $rules = append $rules (dict "apiGroups" (list "") "resources" (list "configmaps") "resourceNames" (list $source.name)) -}}
  {{- else -}}
    {{- $rules = concat $rules (get $known $source.source) -}}
  {{- end -}}
{{- end -}}
{{- $labels := false -}}
{{- $vpcs := false -}}
{{- range .Values.multiCNI.serviceRules -}}
  {{- if hasKey . "namespaceLabel" -}}{{- $labels = true -}}{{- end -}}
  {{- range .notIn -}}{{- if kindIs "map" . -}}{{- $vpcs = true -}}{{- end -}}{{- end -}}
{{- end -}}
{{- if $vpcs -}}
  {{- $rules = append $rules (dict "apiGroups" (list "kubeovn.io") "resources" (list "vpcs")) -}}
{{- end -}}
{{- if $labels -}}
  {{- $rules = append $rules (dict "apiGroups" (list "") "resources" (list "namespaces")) -}}
{{- end -}}
{{- range $rules }}
- {{ set . "verbs" (list "list" "watch") | toJson }}
{{- end }}
{{- end -}}

{{/* Not empty: networks or the owners of services are learned, so what operators accepted is read. */}}
{{- define "fairlead.learns" -}}
{{- with .Values.multiCNI -}}
{{- if or .excludeCIDRsFrom .clusterCIDRsFrom .serviceRules -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* multiCNI as the agent takes it: what is not set and has another default where networks are learned. */}}
{{- define "fairlead.multiCNI" -}}
{{- $settings := deepCopy .Values.multiCNI -}}
{{- $default := ternary "excluded-clients" "all" (ne (include "fairlead.learns" .) "") -}}
{{- $_ := set $settings "excludedFrontends" (default $default $settings.excludedFrontends) -}}
{{- if kindIs "invalid" $settings.masqueradeToExcluded -}}{{- $settings = omit $settings "masqueradeToExcluded" -}}{{- end -}}
{{- if not $settings.consentNamespace -}}{{- $settings = omit $settings "consentNamespace" -}}{{- end -}}
{{- $settings | toJson -}}
{{- end -}}
