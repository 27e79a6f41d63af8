/** SHA-256 of a text that comes in pieces. */
export interface TextDigest {
  /** Takes the next piece. */
  update(piece: string): void;
  /** Of all pieces, in base64; ends it. */
  base64(): string;
}
