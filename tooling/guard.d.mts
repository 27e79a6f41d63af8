/** Makes a folder for the temporary files of this process, and a process that ends what has it in its environment. */
export declare function startGuard(name: "fairlead" | "fairlead-tests"): {
  readonly folder: string;
  end(well: boolean): Promise<void>;
};
/** Whether this process is one that a guard ends: its folder for temporary files is a guard's. */
export declare function isGuarded(): boolean;
