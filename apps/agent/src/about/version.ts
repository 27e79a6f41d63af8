declare const FAIRLEAD_VERSION: string | undefined;

/** Fairlead's version; the build puts it in. */
export const version: string = typeof FAIRLEAD_VERSION === "string" ? FAIRLEAD_VERSION : "0.0.0-dev";
