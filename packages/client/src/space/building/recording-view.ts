// A document as a transaction's function sees it: it looks like a plain object, cannot be changed, and records what is
// touched. Reading a value records its path; listing keys or reading a length records a shallow read.
import { type FabricValue, isBytes, isFabricArray, isFabricObject } from "@claudemesh/protocol/spaces/fabric-value";
import { isIndex } from "@claudemesh/protocol/spaces/pointer";
import type { ReadNode } from "./read-trie.ts";

/** The value itself for a leaf; a view for a container. */
export function viewOf(value: FabricValue, node: ReadNode): unknown {
  if (!isFabricArray(value) && !isFabricObject(value)) {
    node.isDeep = true;
    return isBytes(value) ? value.slice() : value;
  }
  node.isSeen = true;
  // The target stands in for the document: a proxy of a frozen object could not answer with views of its members.
  node.view ??= isFabricArray(value)
    ? new Proxy([], new ViewHandler(value, Object.keys(value), node))
    : new Proxy({}, new ViewHandler(value, Object.keys(value), node));
  return node.view;
}

class ViewHandler implements ProxyHandler<object> {
  readonly #container: { readonly [key: string]: FabricValue };
  readonly #keys: readonly string[];
  readonly #node: ReadNode;
  readonly #isArray: boolean;

  constructor(container: object, keys: readonly string[], node: ReadNode) {
    this.#container = container as { readonly [key: string]: FabricValue };
    this.#keys = keys;
    this.#node = node;
    this.#isArray = Array.isArray(container);
  }

  get(target: object, key: string | symbol): unknown {
    if (typeof key === "string") {
      if (this.#isLength(key)) return this.#length();
      if (Object.hasOwn(this.#container, key)) return viewOf(this.#container[key], this.#node.child(key));
      this.#sawNothing(key);
    }
    return Reflect.get(Object.getPrototypeOf(target) as object, key);
  }

  has(target: object, key: string | symbol): boolean {
    if (typeof key === "symbol") return Reflect.has(Object.getPrototypeOf(target) as object, key);
    return this.#isLength(key) || this.#sees(key) || key in (Object.getPrototypeOf(target) as object);
  }

  ownKeys(): string[] {
    this.#node.isShallow = true;
    return this.#isArray ? [...this.#keys, "length"] : [...this.#keys];
  }

  getOwnPropertyDescriptor(_: object, key: string | symbol): PropertyDescriptor | undefined {
    if (typeof key === "symbol") return undefined;
    if (this.#isLength(key)) {
      return { value: this.#length(), writable: true, enumerable: false, configurable: false };
    }
    if (!this.#sees(key)) return undefined;
    // A getter, because code that only lists keys has not read the values.
    const get = () => viewOf(this.#container[key], this.#node.child(key));
    return { get, enumerable: true, configurable: true };
  }

  set(): never {
    throw readOnly();
  }

  defineProperty(): never {
    throw readOnly();
  }

  deleteProperty(): never {
    throw readOnly();
  }

  setPrototypeOf(): never {
    throw readOnly();
  }

  preventExtensions(): never {
    throw readOnly();
  }

  #isLength(key: string): boolean {
    return this.#isArray && key === "length";
  }

  #length(): number {
    this.#node.isShallow = true;
    return this.#keys.length;
  }

  #sees(key: string): boolean {
    if (!Object.hasOwn(this.#container, key)) {
      this.#sawNothing(key);
      return false;
    }
    if (!this.#node.isShallow) this.#node.child(key).isSeen = true;
    return true;
  }

  #sawNothing(key: string): void {
    // An array has no keys other than indexes in any state.
    if (this.#node.isShallow || (this.#isArray && !isIndex(key))) return;
    const child = this.#node.child(key);
    child.isSeen = true;
    child.isAbsent = true;
  }
}

function readOnly(): TypeError {
  return new TypeError("What tx.get returns cannot be changed; write with tx.set, tx.patch or tx.delete.");
}
