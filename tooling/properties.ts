import fc from "fast-check";
import { runs } from "./runs.ts";

/** Set-up of long runs: properties that name no number of runs get FAIRLEAD_RUNS times as many as well. */
fc.configureGlobal({ numRuns: runs(100) });
