import { existsSync } from "node:fs";

/**
 * Debian's, in its packages of these names. The first one has no windows with toolbars, which are pages themselves: it
 * takes half of the processor time.
 */
const PROGRAMS = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"] as const;

/** The browser that tests open; without a browser, the path where one would be. */
export const BROWSER: string = PROGRAMS.find((program) => existsSync(program)) ?? PROGRAMS[0];
