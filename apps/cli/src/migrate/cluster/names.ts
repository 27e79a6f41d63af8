/** Where Fairlead's objects are. */
export const NAMESPACE = "kube-system";

/** kube-proxy's DaemonSet, as kubeadm, kind and kubespray have it. */
export const KUBE_PROXY_DAEMON_SET = "kube-system/kube-proxy";

/** Of all of Fairlead's objects. */
export const FAIRLEAD = "fairlead";

export const NAME_LABEL = "app.kubernetes.io/name";
export const MANAGED_BY_LABEL = "app.kubernetes.io/managed-by";
export const MANAGER = "fairlead-migrate";

/** Annotation of Fairlead's DaemonSet: what of its objects it was made with. */
export const MANIFESTS_ANNOTATION = "fairlead.dev/manifests";

/** Annotation of the Lease: the process that holds it, as JSON, for others on the same machine. */
export const PROCESS_ANNOTATION = "fairlead.dev/process";

/** Annotation of Fairlead's DaemonSet: the options of the run that made it, as JSON. */
export const OPTIONS_ANNOTATION = "fairlead.dev/migrate-options";
