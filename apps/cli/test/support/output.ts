/** Text that comes bit by bit, and those who wait for something in it. */
export class Output {
  #text = "";
  #check: (() => void) | undefined;

  get text(): string {
    return this.#text;
  }

  add(text: string): void {
    this.#text += text;
    this.#check?.();
  }

  /** Resolves when the text matches; the test's own time limit ends the wait otherwise. */
  until(pattern: RegExp): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#check = () => {
      if (pattern.test(this.#text)) resolve();
    };
    this.#check();
    return promise;
  }
}
