package hdl

// Body is the body of a request or of a response: one of the types of this package whose comment says so.
type Body interface {
	// Append appends the body as a message of version v has it.
	Append(dst []byte, v Version) []byte
}

// Opaque is a Body that this package does not read: of an operation it does not know.
type Opaque []byte

// Append appends the octets.
func (o Opaque) Append(dst []byte, _ Version) []byte { return append(dst, o...) }

// ResolveRequest is the Body of a request of RESOLVE. Without indexes and types it asks for all values.
type ResolveRequest struct {
	Handle  []byte
	Indexes []uint32
	Types   [][]byte
}

// Decode reads a body, into the memory that q already has: a server that uses one ResolveRequest for
// many requests allocates nothing here.
func (q *ResolveRequest) Decode(body []byte) error {
	r := newReader("resolve request", ProtocolError, body)
	q.Handle = r.handle("handle")
	q.Indexes = r.indexes(q.Indexes)
	q.Types = r.strings(q.Types[:0], "types")
	return r.end()
}

// Append appends the body.
func (q *ResolveRequest) Append(dst []byte, _ Version) []byte {
	dst = appendStr(dst, q.Handle)
	dst = appendIndexes(dst, q.Indexes)
	return appendStrings(dst, q.Types)
}

// indexes reads a count and indexes, into the memory of list.
func (r *reader) indexes(list []uint32) []uint32 {
	list = resized(list, r.count("indexes", 4, maxCount, r.code))
	for i := range list {
		list[i] = r.u32("index")
	}
	return list
}

func appendIndexes(dst []byte, list []uint32) []byte {
	dst = appendU32(dst, uint32(len(list)))
	for _, n := range list {
		dst = appendU32(dst, n)
	}
	return dst
}

// strings reads a count and strings, and appends them to list. It makes room for all at once.
func (r *reader) strings(list [][]byte, field string) [][]byte {
	list = resized(list, r.count(field, 4, maxCount, r.code))
	for i := range list {
		if list[i] = r.str(field); r.err != nil {
			return list[:0]
		}
	}
	return list
}

func appendStrings(dst []byte, list [][]byte) []byte {
	dst = appendU32(dst, uint32(len(list)))
	for _, s := range list {
		dst = appendStr(dst, s)
	}
	return dst
}

// HandleBody is the Body of requests that have a handle only: GET_SITE_INFO, LIST_NAS and END with "/",
// DELETE, LIST, LIST_DERIVED_PREFIXES, HOME and UNHOME. It is also what CREATE answers.
type HandleBody struct{ Handle []byte }

// Decode reads a body.
func (h *HandleBody) Decode(body []byte) error {
	r := newReader("request", ProtocolError, body)
	h.Handle = r.handle("handle")
	return r.end()
}

// Append appends the body.
func (h *HandleBody) Append(dst []byte, _ Version) []byte { return appendStr(dst, h.Handle) }

// ValuesBody is the Body of requests of CREATE, ADD and MODIFY, and of the answer of RESOLVE.
type ValuesBody struct {
	Handle []byte
	Values []Value
}

// Decode reads a body, into the memory that b already has.
func (b *ValuesBody) Decode(body []byte) error {
	r := newReader("handle with values", ProtocolError, body)
	b.Handle = r.handle("handle")
	b.Values = r.values(b.Values)
	return r.end()
}

// Append appends the body.
func (b *ValuesBody) Append(dst []byte, _ Version) []byte {
	return AppendValues(appendStr(dst, b.Handle), b.Values)
}

// AppendHandle appends a handle with its length: the beginning of a ValuesBody, for servers that append
// values which are encoded already.
func AppendHandle[T ~string | ~[]byte](dst []byte, handle T) []byte { return appendStr(dst, handle) }

// RemoveRequest is the Body of a request of REMOVE.
type RemoveRequest struct {
	Handle  []byte
	Indexes []uint32
}

// Decode reads a body, into the memory that q already has.
func (q *RemoveRequest) Decode(body []byte) error {
	r := newReader("remove request", ProtocolError, body)
	q.Handle = r.handle("handle")
	q.Indexes = r.indexes(q.Indexes)
	return r.end()
}

// Append appends the body.
func (q *RemoveRequest) Append(dst []byte, _ Version) []byte {
	return appendIndexes(appendStr(dst, q.Handle), q.Indexes)
}

// AnswerRequest is the Body of a request of ANSWER: the answer to a challenge.
type AnswerRequest struct {
	Type     []byte // HS_PUBKEY or HS_SECKEY
	Identity Reference
	Answer   []byte // VerifyKeyAnswer and VerifySecretAnswer check it
}

// Decode reads a body.
func (q *AnswerRequest) Decode(body []byte) error {
	r := newReader("answer to a challenge", ProtocolError, body)
	q.Type = r.str("type of the key")
	q.Identity = Reference{Handle: string(r.handle("handle of the identity")), Index: r.u32("index of the identity")}
	q.Answer = r.str("answer")
	return r.end()
}

// Append appends the body.
func (q *AnswerRequest) Append(dst []byte, _ Version) []byte {
	dst = q.Identity.append(appendStr(dst, q.Type))
	return appendStr(dst, q.Answer)
}

// VerifyRequest is the Body of a request of VERIFY: it asks another server whether an answer to a
// challenge of ours is right.
type VerifyRequest struct {
	Identity              Reference
	Nonce, Digest, Answer []byte
}

// Decode reads a body.
func (q *VerifyRequest) Decode(body []byte) error {
	r := newReader("verify request", ProtocolError, body)
	q.Identity = Reference{Handle: string(r.handle("handle of the identity")), Index: r.u32("index of the identity")}
	q.Nonce, q.Digest, q.Answer = r.str("nonce"), r.str("digest"), r.str("answer")
	return r.end()
}

// Append appends the body.
func (q *VerifyRequest) Append(dst []byte, _ Version) []byte {
	dst = q.Identity.append(dst)
	dst = appendStr(dst, q.Nonce)
	dst = appendStr(dst, q.Digest)
	return appendStr(dst, q.Answer)
}

// KeyExchangeDH is the mode of sessions whose keys are agreed by Diffie and Hellman's method: the only
// one that works in the reference.
const KeyExchangeDH = 4

// SessionRequest is the Body of a request of SESSION.
type SessionRequest struct {
	Mode     uint16
	Timeout  uint32 // seconds
	Identity Reference
	Key      []byte // DH_PUB_KEY; ParsePublicKey reads it
	Rest     []byte // two zero octets, which clients append; in other modes than 4, all that follows Timeout
}

// Decode reads a body. Of other modes than KeyExchangeDH it reads mode and timeout only.
func (q *SessionRequest) Decode(body []byte) error {
	r := newReader("session request", ProtocolError, body)
	*q = SessionRequest{Mode: r.u16("mode"), Timeout: r.u32("timeout")}
	if q.Mode == KeyExchangeDH {
		q.Identity = Reference{Handle: string(r.handle("handle of the identity")), Index: r.u32("index of the identity")}
		q.Key = r.str("key")
		q.Rest = r.zeroTail()
	} else {
		q.Rest = r.rest()
	}
	return r.end()
}

// zeroTail reads two zero octets, if they are there. They are in the bodies of SESSION.
func (r *reader) zeroTail() []byte {
	if r.err == nil && r.left() == 2 && zeros(r.b[r.at:]) {
		return r.take(2, "end")
	}
	return nil
}

// Append appends the body.
func (q *SessionRequest) Append(dst []byte, _ Version) []byte {
	dst = appendU32(appendU16(dst, q.Mode), q.Timeout)
	if q.Mode == KeyExchangeDH {
		dst = appendStr(q.Identity.append(dst), q.Key)
	}
	return append(dst, q.Rest...)
}

// ParseRequest reads the body of a request by its operation. A server that must not allocate calls the
// Decode method of the body that it expects.
func ParseRequest(m *Message) (Body, error) {
	var b interface {
		Body
		Decode([]byte) error
	}
	switch m.Header.Operation {
	case Resolve:
		b = new(ResolveRequest)
	case GetSiteInfo, DeleteHandle, ListHandles, ListDerived, HomePrefix, UnhomePrefix, ListPrefixes, EndSession:
		b = new(HandleBody)
	case CreateHandle, AddValue, ModifyValue:
		b = new(ValuesBody)
	case RemoveValue:
		b = new(RemoveRequest)
	case AnswerChallenge:
		b = new(AnswerRequest)
	case VerifyAnswer:
		b = new(VerifyRequest)
	case SetUpSession:
		b = new(SessionRequest)
	default:
		return Opaque(m.Body), nil
	}
	if err := b.Decode(m.Body); err != nil {
		return nil, err
	}
	return b, nil
}
