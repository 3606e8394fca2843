package hdl

import "unicode/utf8"

// Value is one value of a handle (specification, section 5).
type Value struct {
	Index       uint32 // above 0x7fffffff the reference sees a negative number
	Timestamp   uint32 // Unix time
	TTLType     uint8  // TTLRelative or TTLAbsolute; others are kept
	TTL         uint32 // seconds, or a Unix time
	Permissions uint8  // AdminRead ...; other bits are kept
	Type, Data  []byte
	References  []Reference
}

// The kinds of a value's time to live.
const (
	TTLRelative = 0
	TTLAbsolute = 1
)

// The permissions of a value.
const (
	AdminRead   = 8
	AdminWrite  = 4
	PublicRead  = 2
	PublicWrite = 1
)

// Reference names a value of a handle. Index 0 in HS_ADMIN and HS_VLIST stands for any.
type Reference struct {
	Handle string
	Index  uint32
}

// The least octets that a value and a reference have: with these a reader judges counts.
const (
	minValue     = 4 + 4 + 1 + 4 + 1 + 4 + 4 + 4
	minReference = 4 + 4
)

// ParseValue reads one value, which is all of b.
func ParseValue(b []byte) (Value, error) {
	r := newReader("value", InvalidValue, b)
	var v Value
	r.value(&v)
	return v, r.end()
}

// value reads a value into v, whose memory for references it uses again.
func (r *reader) value(v *Value) {
	v.Index = r.u32("index of a value")
	v.Timestamp = r.u32("timestamp of a value")
	v.TTLType = r.u8("kind of time to live")
	v.TTL = r.u32("time to live")
	v.Permissions = r.u8("permissions of a value")
	v.Type = r.str("type of a value")
	v.Data = r.str("data of a value")
	v.References = r.references(v.References[:0], "references of a value", MaxValues)
}

// values reads a count and values, into the memory of vs.
func (r *reader) values(vs []Value) []Value {
	n := r.count("values", minValue, MaxValues, InvalidValue)
	vs = resized(vs, n)
	for i := range vs {
		if r.err != nil {
			return nil
		}
		r.value(&vs[i])
	}
	return vs
}

// references reads a count and references.
func (r *reader) references(refs []Reference, field string, most uint32) []Reference {
	n := r.count(field, minReference, most, r.code)
	if n == 0 {
		return refs
	}
	refs = resized(refs, n)
	for i := range refs {
		refs[i] = r.reference()
	}
	return refs
}

func (r *reader) reference() Reference {
	return Reference{Handle: string(r.handle("handle of a reference")), Index: r.u32("index of a reference")}
}

// Append appends the value.
func (v *Value) Append(dst []byte) []byte {
	dst = appendU32(dst, v.Index)
	dst = appendU32(dst, v.Timestamp)
	dst = append(dst, v.TTLType)
	dst = appendU32(dst, v.TTL)
	dst = append(dst, v.Permissions)
	dst = appendStr(dst, v.Type)
	dst = appendStr(dst, v.Data)
	return appendReferences(dst, v.References)
}

// AppendValues appends the number of values, and the values.
func AppendValues(dst []byte, vs []Value) []byte {
	dst = appendU32(dst, uint32(len(vs)))
	for i := range vs {
		dst = vs[i].Append(dst)
	}
	return dst
}

func (ref *Reference) append(dst []byte) []byte {
	return appendU32(appendStr(dst, ref.Handle), ref.Index)
}

func appendReferences(dst []byte, refs []Reference) []byte {
	dst = appendU32(dst, uint32(len(refs)))
	for i := range refs {
		dst = refs[i].append(dst)
	}
	return dst
}

// ParseValueList reads the number of values and the values, which are all of b: the form of a record in
// files and referrals. It reads into the memory of vs, which may be nil.
func ParseValueList(b []byte, vs []Value) ([]Value, error) {
	r := newReader("list of values", InvalidValue, b)
	vs = r.values(vs)
	return vs, r.end()
}

// HasType reports whether a value's type is the one that is asked for, as RESOLVE compares them: ASCII
// letters without case, and a wanted type that ends with a dot stands also for all types below it.
func HasType(typ, wanted []byte) bool {
	if n := len(wanted); n > 0 && wanted[n-1] == '.' {
		return len(typ) == n-1 && equalFold(typ, wanted[:n-1]) || len(typ) >= n && equalFold(typ[:n], wanted)
	}
	return equalFold(typ, wanted)
}

// equalFold compares octets, ASCII letters without case. (bytes.EqualFold folds all of Unicode, which
// the protocol does not.)
func equalFold(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i, c := range a {
		if upper(c) != upper(b[i]) {
			return false
		}
	}
	return true
}

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}

// CheckHandle says whether octets can be a handle: UTF-8, not empty, not too long. Readers of messages
// do not ask it, because a server judges the prefix first (specification, section 7).
func CheckHandle(handle []byte) error {
	switch {
	case len(handle) == 0:
		return errorf(InvalidHandle, "hdl.handle-empty", "the handle is empty")
	case len(handle) > MaxHandle:
		return errorf(InvalidHandle, "hdl.handle-too-long", "the handle has {octets} octets, and at most {most} are allowed", len(handle), MaxHandle)
	case !utf8.Valid(handle):
		return errorf(InvalidHandle, "hdl.handle-not-utf8", "the handle is not UTF-8")
	}
	return nil
}
