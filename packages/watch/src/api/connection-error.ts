/**
 * The kubeconfig, its files or the pod's service account can't be used. The message says where and what would be right.
 */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
}
