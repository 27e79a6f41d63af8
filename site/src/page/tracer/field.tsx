import { useId, useState } from "preact/hooks";

interface Props {
  readonly label: string;
  readonly value: string;
  readonly choices?: readonly string[];
  readonly onValue: (value: string) => void;
}

/** A line of text that keeps what is typed as it is typed. */
export function Field({ label, value, choices, onValue }: Props) {
  const [text, setText] = useState(value);
  const list = useId();
  const type = (event: { readonly currentTarget: HTMLInputElement }) => {
    setText(event.currentTarget.value);
    onValue(event.currentTarget.value);
  };
  return (
    <label>
      {label}
      <input
        type="text"
        value={text}
        spellcheck={false}
        onInput={type}
        {...(choices !== undefined && { list })}
        required
      />
      {choices !== undefined && (
        <datalist id={list}>
          {choices.map((choice) => (
            <option key={choice} value={choice} />
          ))}
        </datalist>
      )}
    </label>
  );
}
