/**
 * A list of any length of which one row is chosen. Only the rows in sight are in the document, so that 5,000 routes cost
 * as much as fifty. It follows the listbox pattern of the ARIA Authoring Practices: the list has the focus, and
 * `aria-activedescendant` names the row that the arrow keys are on.
 */
import type { JSX, TargetedKeyboardEvent } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { scrollToRow, windowOf } from "../model/list-window.ts";

/** Height of a row in CSS pixels; style/routes.css has the same number. */
const ROW_HEIGHT = 56;

export interface OptionListProps<Item> {
  readonly label: string;
  readonly items: readonly Item[];
  readonly chosen: string;
  readonly keyOf: (item: Item) => string;
  readonly draw: (item: Item) => JSX.Element;
  readonly onChoose: (key: string) => void;
}

export function OptionList<Item>(props: OptionListProps<Item>): JSX.Element {
  const { label, items, chosen, keyOf, draw, onChoose } = props;
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ scrollTop: 0, height: 600 });
  const [active, setActive] = useState(0);
  useLayoutEffect(() => {
    const measure = (): void => {
      if (box.current !== null) setView({ scrollTop: box.current.scrollTop, height: box.current.clientHeight });
    };
    measure();
    addEventListener("resize", measure);
    return () => removeEventListener("resize", measure);
  }, [items]);

  const at = Math.min(active, Math.max(0, items.length - 1));
  const { first, end } = windowOf(items.length, { ...view, rowHeight: ROW_HEIGHT });
  const moveTo = (row: number): void => {
    const target = Math.max(0, Math.min(items.length - 1, row));
    setActive(target);
    if (box.current !== null) box.current.scrollTop = scrollToRow(target, { ...view, rowHeight: ROW_HEIGHT });
  };
  const choose = (row: number): void => {
    const item = items[row];
    if (item !== undefined) onChoose(keyOf(item));
  };
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLDivElement>): void => {
    const page = Math.max(1, Math.floor(view.height / ROW_HEIGHT) - 1);
    const moves: Readonly<Record<string, number | undefined>> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: items.length - 1,
    };
    const target = moves[event.key];
    if (target !== undefined) moveTo(target);
    else if (event.key === "Enter" || event.key === " ") choose(at);
    else return;
    event.preventDefault();
  };
  return (
    <div
      ref={box}
      class="options"
      role="listbox"
      aria-label={label}
      tabIndex={0}
      aria-activedescendant={items.length === 0 ? undefined : `option-${at}`}
      onKeyDown={onKeyDown}
      onScroll={({ currentTarget }) =>
        setView({ scrollTop: currentTarget.scrollTop, height: currentTarget.clientHeight })
      }
    >
      <div class="options-height" role="presentation" style={{ height: `${items.length * ROW_HEIGHT}px` }}>
        {items.slice(first, end).map((item, offset) => {
          const row = first + offset;
          return (
            <div
              key={keyOf(item)}
              id={`option-${row}`}
              class={row === at ? "option active" : "option"}
              role="option"
              aria-selected={keyOf(item) === chosen}
              aria-setsize={items.length}
              aria-posinset={row + 1}
              style={{ transform: `translateY(${row * ROW_HEIGHT}px)` }}
              onClick={() => {
                setActive(row);
                choose(row);
              }}
            >
              {draw(item)}
            </div>
          );
        })}
      </div>
    </div>
  );
}
