/** The shells that there are scripts for. */
export const SHELLS = ["bash", "zsh", "fish"] as const;
