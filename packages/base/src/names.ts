/** The value of label endpointslice.kubernetes.io/managed-by on slices that lead to pods' secondary networks. */
export const SLICES_MANAGER = "fairlead-slices.fairlead.dev";
