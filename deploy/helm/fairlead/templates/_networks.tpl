{{/* What a role has to let an agent read of each source, beside what system:node-proxier does. */}}
{{- define "fairlead.networkRules" -}}
kube-ovn-subnets: [{ apiGroups: [kubeovn.io], resources: [subnets, vpcs] }]
calico-ippools: [{ apiGroups: [crd.projectcalico.org, projectcalico.org], resources: [ippools] }]
cilium-pools: [{ apiGroups: [cilium.io], resources: [ciliumpodippools] }]
cilium-nodes: [{ apiGroups: [cilium.io], resources: [ciliumnodes] }]
ovn-kubernetes-nodes: []
ovn-kubernetes-udns: [{ apiGroups: [k8s.ovn.org], resources: [clusteruserdefinednetworks, userdefinednetworks] }]
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
    {{- $rules = append $rules (dict "apiGroups" (list $parts._2) "resources" (list $parts._0)) -}}
  {{- else -}}
    {{- $rules = concat $rules (get $known $source.source) -}}
  {{- end -}}
{{- end -}}
{{- $labels := false -}}
{{- range .Values.multiCNI.serviceRules -}}
  {{- if hasKey . "namespaceLabel" -}}{{- $labels = true -}}{{- end -}}
{{- end -}}
{{- if $labels -}}
  {{- $rules = append $rules (dict "apiGroups" (list "") "resources" (list "namespaces")) -}}
{{- end -}}
{{- range $rules }}
- {{ set . "verbs" (list "list" "watch") | toJson }}
{{- end }}
{{- end -}}
