/** Debian's, in its package `chromium`. */
export const BROWSER = "/usr/bin/chromium";
