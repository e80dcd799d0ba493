/**
 * Records which members of a plain value are read, so that the translator can report the fields it never read as
 * unsupported. Members are tracked with getters on a copy, one level at a time, so an unread branch costs one property.
 */

export type Step = string | number;

export interface UnreadMember {
  readonly path: readonly Step[];
  readonly value: unknown;
}

export interface TrackedAccess<T> {
  /** A copy equal to the value, which records its reads. */
  readonly view: T;
  /** Returns the outermost members that were never read; members below one of them are not listed. */
  unread(): UnreadMember[];
}

interface TrackedMember extends UnreadMember {
  readonly members: TrackedMember[];
  isRead: boolean;
}

/** @param value plain data without cycles, such as JSON */
export function trackAccess<T extends object>(value: T): TrackedAccess<T> {
  const root: TrackedMember = { path: [], value, members: [], isRead: true };
  // The copy has the same members with the same values.
  return { view: viewOf(value, root) as T, unread: () => unreadBelow(root) };
}

function viewOf(value: object, member: TrackedMember): object {
  const copy: object = Array.isArray(value) ? [] : {};
  for (const [name, child] of Object.entries(value)) {
    if (child === undefined) continue;
    const below: TrackedMember = {
      path: [...member.path, Array.isArray(value) ? Number(name) : name],
      value: child,
      members: [],
      isRead: false,
    };
    member.members.push(below);
    let view: unknown;
    Object.defineProperty(copy, name, {
      enumerable: true,
      get() {
        if (below.isRead) return view;
        below.isRead = true;
        view = typeof child === "object" && child !== null ? viewOf(child, below) : child;
        return view;
      },
    });
  }
  return copy;
}

function unreadBelow({ members }: TrackedMember): UnreadMember[] {
  return members.flatMap((member) => (member.isRead ? unreadBelow(member) : [member]));
}
