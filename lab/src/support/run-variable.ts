/** In the environment of every process that a run starts: the run's id. */
export const RUN_VARIABLE = "FAIRLEAD_E2E_RUN";
