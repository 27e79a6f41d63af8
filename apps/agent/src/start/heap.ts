import { setFlagsFromString } from "node:v8";

/**
 * Keeps V8's young generation at its first size. A proxy idles after a burst of reading; a young generation that grew in
 * the burst stays resident for good. Costs some CPU time while reading (0.6 s of 3.9 s for 10,000 services with 10 endpoints
 * each), saves a quarter of the memory there, and makes single collections shorter.
 */
export function keepYoungGenerationSmall(): void {
  setFlagsFromString("--semi-space-growth-factor=1");
}
