// A document under change: applies the six patch operations, each of which returns what it touched or why it does not
// fit. A container is copied before its first change and changed in place after that; a value from outside is never
// changed. A draft that returned a reason, or exceeded its work limit, must be discarded.
import { type EntityDocument, isEntityDocument, type ReadPath } from "./entity.ts";
import {
  type FabricValue,
  fabricDepth,
  fabricEqual,
  isFabricArray,
  isFabricObject,
  maxFabricDepth,
  setOwn,
} from "./fabric-value.ts";
import type { PatchFailureReason } from "./patch-failure.ts";
import { isIndex, startsWithPath } from "./pointer.ts";
import { looksIndexed, type Spot, type Touch } from "./touch.ts";
import { copyCost, largeObjectKeys, type Work, workCosts } from "./work.ts";

type OwnObject = { [key: string]: FabricValue };
type OwnContainer = FabricValue[] | OwnObject;

/** Where a path leads: to a value, or to a container that lacks the key at `depth`, so that an add may create it. */
type Walk =
  | { readonly kind: "found"; readonly value: FabricValue }
  | { readonly kind: "absent"; readonly depth: number; readonly inArray: boolean }
  | { readonly kind: "refused"; readonly reason: PatchFailureReason };

/** A call with very many arguments would overflow the stack. */
const itemsPerCall = 1_000;

export type DraftOptions = {
  /** Counts the work that is done; undefined: no limit. */
  readonly work?: Work | undefined;
  /** The draft may change the document, and every value that is put into it, because no other code uses them. */
  readonly ownsAll?: boolean | undefined;
};

export class Draft {
  #root: EntityDocument | undefined;
  readonly #work: Work | undefined;
  readonly #ownsAll: boolean;
  /** Weak, because the next change may drop a container, and a draft may see very many of them. */
  readonly #owned = new WeakSet<object>();
  /** At least the document's depth; undefined until a move needs it. */
  #depthBound: number | undefined;

  constructor(document: EntityDocument | undefined, { work, ownsAll = false }: DraftOptions = {}) {
    this.#root = document;
    this.#work = work;
    this.#ownsAll = ownsAll;
  }

  get document(): EntityDocument | undefined {
    return this.#root;
  }

  add(path: ReadPath, value: FabricValue): Touch | PatchFailureReason {
    if (!this.#admits(path.length + fabricDepth(value))) return "too_deep";
    const spot = this.#put(path, value);
    if (typeof spot === "string") return spot;
    if (spot.isShift) return { kind: "shift", ...spot.at };
    // `-` means the end of an array in one state and a key in another, so what is read at it depends on which it is.
    return path.indexOf("-", 1) > 0 ? { kind: "write", ...spot.at } : { kind: "write", ...spot.at, covers: true };
  }

  replace(path: ReadPath, value: FabricValue): Touch | PatchFailureReason {
    const walk = this.#walk(path);
    if (walk.kind !== "found") return walk.kind === "refused" ? walk.reason : "missing";
    if (path.length === 0 && !isEntityDocument(value)) return "not_a_document";
    if (!this.#admits(path.length + fabricDepth(value))) return "too_deep";
    this.#setExisting(path, value);
    return { kind: "write", path, keeps: true, covers: true };
  }

  remove(path: ReadPath): Touch | PatchFailureReason {
    const removed = this.#take(path);
    if (typeof removed === "string") return removed;
    if (removed.isShift) return { kind: "shift", ...removed.at };
    // In an array the next item would move to this index, so removing at an index covers nothing.
    return looksIndexed(path) ? { kind: "write", ...removed.at } : { kind: "write", ...removed.at, covers: true };
  }

  move(from: ReadPath, path: ReadPath): Touch | PatchFailureReason {
    const walk = this.#walk(from);
    if (walk.kind !== "found") return walk.kind === "refused" ? walk.reason : "missing";
    if (startsWithPath(path, from)) {
      if (path.length > from.length) return "into_itself";
      return { kind: "move", from: this.#spotOf(from), to: this.#spotOf(path) };
    }
    if (!this.#admitsMove(from, path, walk.value)) return "too_deep";
    const removed = this.#take(from);
    if (typeof removed === "string") return removed;
    const put = this.#put(path, walk.value);
    if (typeof put === "string") return put;
    return { kind: "move", from: removed.at, to: put.at };
  }

  test(path: ReadPath, value: FabricValue): undefined | PatchFailureReason {
    const walk = this.#walk(path);
    if (walk.kind === "refused") return walk.reason;
    if (walk.kind === "absent") return "missing";
    const spend = (keys: number) => this.#work?.spend(keys * workCosts.keyCompared);
    return fabricEqual(walk.value, value, spend) ? undefined : "test_failed";
  }

  splice(path: ReadPath, index: number, remove: number, items: readonly FabricValue[]): Touch | PatchFailureReason {
    const walk = this.#walk(path);
    if (walk.kind !== "found") return walk.kind === "refused" ? walk.reason : "missing";
    if (!isFabricArray(walk.value)) return "not_an_array";
    if (index > walk.value.length || index + remove > walk.value.length) return "bad_index";
    if (items.some((item) => !this.#admits(path.length + 1 + fabricDepth(item)))) return "too_deep";
    this.#work?.spend((walk.value.length - index + items.length) * workCosts.itemMoved);
    if (items.length <= itemsPerCall) {
      (this.#own(path) as FabricValue[]).splice(index, remove, ...items);
    } else {
      this.#work?.spend(index * workCosts.itemMoved);
      const edited = [...walk.value.slice(0, index), ...items, ...walk.value.slice(index + remove)];
      this.#owned.add(edited);
      this.#setExisting(path, edited);
    }
    return { kind: "shift", path, keeps: true };
  }

  /** Puts a value where an add does, and creates missing parents. */
  #put(path: ReadPath, value: FabricValue): { at: Spot; isShift: boolean } | PatchFailureReason {
    if (path.length === 0) {
      if (!isEntityDocument(value)) return "not_a_document";
      this.#root = value;
      return { at: { path }, isShift: false };
    }
    const parent = this.#walk(path.slice(0, -1));
    if (parent.kind === "refused") return parent.reason;
    if (parent.kind === "absent") return this.#putWithParents(path, value, parent.depth, parent.inArray);
    const key = path.at(-1) ?? "";
    if (isFabricArray(parent.value)) {
      const index = indexIn(parent.value, key, parent.value.length);
      if (index === undefined) return "bad_index";
      this.#work?.spend((parent.value.length - index) * workCosts.itemMoved);
      (this.#own(path.slice(0, -1)) as FabricValue[]).splice(index, 0, value);
      return { at: arraySpot(path), isShift: true };
    }
    if (!isFabricObject(parent.value)) return "not_a_container";
    const keeps = Object.hasOwn(parent.value, key);
    setOwn(this.#own(path.slice(0, -1)) as OwnObject, key, value);
    return { at: objectSpot(path, keeps), isShift: false };
  }

  /** The container at `depth` keys lacks the next key; everything from there on is created around the value. */
  #putWithParents(
    path: ReadPath,
    value: FabricValue,
    depth: number,
    inArray: boolean,
  ): { at: Spot; isShift: boolean } | PatchFailureReason {
    if (this.#root === undefined) {
      this.#root = {};
      const created = this.#put(path, value);
      // The document itself is the highest parent that can be created, and it is an object whatever the first key is.
      return typeof created === "string" ? created : { at: madeSpot([], path), isShift: created.isShift };
    }
    let nested = value;
    let hasArray = false;
    for (let index = path.length - 1; index > depth; index -= 1) {
      const key = path[index] ?? "";
      if (key === "-" || isIndex(key)) {
        if (key !== "-" && key !== "0") return "bad_index";
        nested = [nested];
        hasArray = true;
      } else {
        const parent: OwnObject = {};
        setOwn(parent, key, nested);
        nested = parent;
      }
    }
    const container = this.#own(path.slice(0, depth));
    if (inArray) {
      (container as FabricValue[]).push(nested);
      return { at: arraySpot(path.slice(0, depth + 1)), isShift: true };
    }
    setOwn(container as OwnObject, path[depth] ?? "", nested);
    return { at: madeSpot(path.slice(0, depth + 1), path.slice(depth + 1)), isShift: hasArray };
  }

  #take(path: ReadPath): { at: Spot; isShift: boolean } | PatchFailureReason {
    if (path.length === 0) return this.#root === undefined ? "missing" : "not_a_document";
    const walk = this.#walk(path);
    if (walk.kind !== "found") return walk.kind === "refused" ? walk.reason : "missing";
    const container = this.#own(path.slice(0, -1));
    const key = path.at(-1) ?? "";
    if (Array.isArray(container)) {
      this.#work?.spend((container.length - Number(key)) * workCosts.itemMoved);
      container.splice(Number(key), 1);
      return { at: arraySpot(path), isShift: true };
    }
    delete container[key];
    return { at: objectSpot(path, false), isShift: false };
  }

  /** Whether the document may become this deep at one path. */
  #admits(depth: number): boolean {
    if (depth > maxFabricDepth) return false;
    if (this.#depthBound !== undefined) this.#depthBound = Math.max(this.#depthBound, depth);
    return true;
  }

  /**
   * Checks the bound first: walking everything that is moved, for each of many moves, would take time quadratic in the
   * size of the commit.
   */
  #admitsMove(from: ReadPath, path: ReadPath, value: FabricValue): boolean {
    if (path.length <= from.length) return true;
    this.#depthBound ??= this.#measureDepth(this.#root);
    if (this.#admits(path.length + this.#depthBound - from.length)) return true;
    this.#depthBound = this.#measureDepth(this.#root);
    return this.#admits(path.length + this.#measureDepth(value));
  }

  /** Walks all of a value, which may be as large as the document however small the patch is. */
  #measureDepth(value: FabricValue): number {
    return fabricDepth(value, maxFabricDepth, (members) => this.#work?.spend(members * workCosts.memberWalked));
  }

  #spotOf(path: ReadPath): Spot {
    if (path.length === 0) return { path };
    const parent = this.#walk(path.slice(0, -1));
    const inArray = parent.kind === "found" && isFabricArray(parent.value);
    return inArray ? arraySpot(path) : objectSpot(path, true);
  }

  #walk(path: ReadPath): Walk {
    if (this.#root === undefined) return { kind: "absent", depth: 0, inArray: false };
    let value: FabricValue = this.#root;
    for (const [depth, key] of path.entries()) {
      if (isFabricArray(value)) {
        const index = indexIn(value, key, value.length);
        if (index === undefined) return { kind: "refused", reason: "bad_index" };
        if (index === value.length) return { kind: "absent", depth, inArray: true };
        value = value[index];
      } else if (isFabricObject(value)) {
        if (!Object.hasOwn(value, key)) return { kind: "absent", depth, inArray: false };
        value = value[key];
      } else {
        return { kind: "refused", reason: "not_a_container" };
      }
    }
    return { kind: "found", value };
  }

  /** The container at a path that is known to lead to one; it is copied first if this draft has not copied it yet. */
  #own(path: ReadPath): OwnContainer {
    let container = this.#ownOne(this.#root as FabricValue);
    this.#root = container as EntityDocument;
    for (const key of path) {
      const child = this.#ownOne(childOf(container, key));
      setChild(container, key, child);
      container = child;
    }
    return container;
  }

  #ownOne(container: FabricValue): OwnContainer {
    if (this.#ownsAll || this.#owned.has(container as OwnContainer)) return container as OwnContainer;
    const copy = isFabricArray(container) ? this.#copyArray(container) : this.#copyObject(container as OwnObject);
    this.#owned.add(copy);
    return copy;
  }

  #copyArray(array: readonly FabricValue[]): FabricValue[] {
    this.#work?.spend(array.length * workCosts.itemMoved);
    return [...array];
  }

  /**
   * Copies key by key where there are many: spreading an object that has become a hash table takes three times as long.
   */
  #copyObject(object: OwnObject): OwnObject {
    const keys = Object.keys(object);
    this.#work?.spend(copyCost(keys.length));
    if (keys.length <= largeObjectKeys) return { ...object };
    const copy: OwnObject = {};
    for (const key of keys) setOwn(copy, key, object[key]);
    return copy;
  }

  /** At a path that is known to lead to a value. */
  #setExisting(path: ReadPath, value: FabricValue): void {
    if (path.length === 0) this.#root = value as EntityDocument;
    else setChild(this.#own(path.slice(0, -1)), path.at(-1) ?? "", value);
  }
}

/** An index from 0 to `last`, where `-` means the length; undefined for anything else. */
function indexIn(array: readonly FabricValue[], key: string, last: number): number | undefined {
  if (key === "-") return array.length;
  if (!isIndex(key) || Number(key) > last) return undefined;
  return Number(key);
}

function childOf(container: OwnContainer, key: string): FabricValue {
  return Array.isArray(container) ? container[Number(key)] : container[key];
}

function setChild(container: OwnContainer, key: string, value: FabricValue): void {
  if (Array.isArray(container)) container[Number(key)] = value;
  else setOwn(container, key, value);
}

/** The touch for a key of an array: the index of any item may have changed. */
function arraySpot(path: ReadPath): Spot {
  return { path: path.slice(0, -1), keeps: true };
}

function objectSpot(path: ReadPath, keeps: boolean): Spot {
  return { path, ...(keeps && { keeps }), ...(looksIndexed(path) && { indexed: true }) } as Spot;
}

function madeSpot(path: ReadPath, made: ReadPath): Spot {
  const isIndexed = looksIndexed([...path, ...made]);
  return { path, ...(made.length > 0 && { made }), ...(isIndexed && { indexed: true }) } as Spot;
}
