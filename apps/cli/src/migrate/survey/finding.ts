/** One thing that was looked at. */
export interface SurveyFinding {
  readonly topic: string;
  /** `blocks`: nothing is changed before it is put right. */
  readonly state: "fits" | "differs" | "blocks";
  readonly found: string;
  /** What can be done about it. */
  readonly advice?: string;
}
