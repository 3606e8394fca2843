package hdl

// Digest is the digest of a request's header and body, with which a response to a request with the flag
// RD begins. The zero Digest is none.
type Digest struct {
	Code DigestCode
	Sum  []byte
}

// DigestCode names a hash function where the protocol has an octet for it.
type DigestCode uint8

// The digest codes.
const (
	MD5    DigestCode = 1
	SHA1   DigestCode = 2
	SHA256 DigestCode = 3
)

// size returns the length of digests, 0 for an unknown code.
func (c DigestCode) size() int {
	switch c {
	case MD5:
		return 16
	case SHA1:
		return 20
	case SHA256:
		return 32
	}
	return 0
}

// Append appends the code and the digest; nothing for the zero Digest.
func (d Digest) Append(dst []byte) []byte {
	if d.Code == 0 {
		return dst
	}
	return append(append(dst, byte(d.Code)), d.Sum...)
}

// digest reads a digest.
func (r *reader) digest() Digest {
	code := DigestCode(r.u8("digest code"))
	if r.err == nil && code.size() == 0 {
		r.fail(r.code, "hdl.digest-code", "{what}: the digest code is {code}, and 1, 2 and 3 are known", r.what, int(code))
	}
	sum := r.take(code.size(), "digest")
	if r.err != nil {
		return Digest{}
	}
	return Digest{code, sum}
}

// SplitDigest returns the digest with which the body of a response begins, and the rest of the body. A
// response has one if its flags say RD and its version is at least 2.1.
func SplitDigest(m *Message) (Digest, []byte, error) {
	if m.Header.Flags&ReturnDigest == 0 || m.Envelope.Version.Before(1) {
		return Digest{}, m.Body, nil
	}
	r := newReader("response", ProtocolError, m.Body)
	d := r.digest()
	rest := r.rest()
	return d, rest, r.done()
}

// Empty is the Body of responses that say only that the operation succeeded.
type Empty struct{}

// Append appends nothing.
func (Empty) Append(dst []byte, _ Version) []byte { return dst }

// SiteBody is the Body of the response of GET_SITE_INFO: HS_SITE without a length.
type SiteBody struct{ Site []byte } // ParseSite reads it

// Append appends the body.
func (s SiteBody) Append(dst []byte, _ Version) []byte { return append(dst, s.Site...) }

// NamesBody is the Body of the responses of LIST, LIST_DERIVED_PREFIXES and LIST_NAS. The reference sends 50
// names in a message.
type NamesBody struct{ Names [][]byte }

// NamesInMessage is how many names the reference puts into one message of a listing.
const NamesInMessage = 50

// Append appends the body.
func (b *NamesBody) Append(dst []byte, _ Version) []byte { return appendStrings(dst, b.Names) }

// VerifiedBody is the Body of the response of VERIFY.
type VerifiedBody struct{ Valid bool }

// Append appends the body.
func (b VerifiedBody) Append(dst []byte, _ Version) []byte {
	if b.Valid {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// SessionResponse is the Body of the response of SESSION. Before 2.4 it has no algorithm, which is DES.
type SessionResponse struct {
	Mode      uint16
	Algorithm Algorithm
	Key       []byte // the server's DH_PUB_KEY
	Rest      []byte // two zero octets, which servers append
}

func (b *SessionResponse) decode(body []byte, v Version) error {
	r := newReader("session response", ProtocolError, body)
	b.Mode = r.u16("mode")
	data := r.str("key")
	b.Rest = r.zeroTail()
	if err := r.end(); err != nil {
		return err
	}
	if v.Before(4) {
		b.Algorithm, b.Key = DES, data
		return nil
	}
	r = newReader("key of the session response", ProtocolError, data)
	b.Algorithm, b.Key = Algorithm(r.u32("algorithm")), r.rest()
	return r.done()
}

// Append appends the body.
func (b *SessionResponse) Append(dst []byte, v Version) []byte {
	dst = appendU16(dst, b.Mode)
	if v.Before(4) {
		dst = appendStr(dst, b.Key)
	} else {
		dst = appendU32(dst, uint32(4+len(b.Key)))
		dst = append(appendU32(dst, uint32(b.Algorithm)), b.Key...)
	}
	return append(dst, b.Rest...)
}

// ChallengeBody is the Body of a response with the code 402. From 2.1 on the digest of the request stands
// before it, as in all responses with the flag RD; ChallengeOf returns both.
type ChallengeBody struct {
	Nonce []byte
	MD5   []byte // before 2.1: the MD5 digest of the request
}

// Append appends the body.
func (b *ChallengeBody) Append(dst []byte, v Version) []byte {
	dst = appendStr(dst, b.Nonce)
	if v.Before(1) {
		dst = appendStr(dst, b.MD5)
	}
	return dst
}

// ChallengeOf returns the nonce of a challenge, and the digest that it says its request has. The client
// compares the digest with that of the request it sent (RequestDigest) before it answers.
func ChallengeOf(m *Message) (nonce []byte, digest Digest, err error) {
	digest, body, err := ParseResponse(m)
	if err != nil {
		return nil, Digest{}, err
	}
	b, ok := body.(*ChallengeBody)
	switch {
	case !ok:
		return nil, Digest{}, errorf(ProtocolError, "hdl.not-a-challenge", "the response has the code {code}, and is not a challenge", uint32(m.Header.Response))
	case b.MD5 != nil:
		digest = Digest{MD5, b.MD5}
	}
	if len(digest.Sum) != digest.Code.size() || digest.Code == 0 {
		return nil, Digest{}, errorf(ProtocolError, "hdl.challenge-without-digest", "the challenge has no digest of the request, so it may be the challenge to another request; do not answer it")
	}
	return b.Nonce, digest, nil
}

// ErrorBody is the Body of a response that says why an operation failed.
type ErrorBody struct {
	Text    []byte   // may be empty; nil: the body has no octets at all
	Indexes []uint32 // DO-IRP 3.0: of the values that are meant; nil: no list
}

func (b *ErrorBody) decode(body []byte) error {
	*b = ErrorBody{}
	if len(body) == 0 {
		return nil
	}
	r := newReader("error", ProtocolError, body)
	if b.Text = r.str("text"); r.err == nil && r.left() > 0 {
		if b.Indexes = r.indexes(nil); b.Indexes == nil {
			b.Indexes = []uint32{}
		}
	}
	return r.end()
}

// Append appends the body.
func (b *ErrorBody) Append(dst []byte, _ Version) []byte {
	if b.Text == nil && b.Indexes == nil {
		return dst
	}
	if dst = appendStr(dst, b.Text); b.Indexes != nil {
		dst = appendIndexes(dst, b.Indexes)
	}
	return dst
}

// ReferralBody is the Body of a response with the code 302 or 303: another handle to look at, or the
// values with the sites to ask.
type ReferralBody struct {
	Handle []byte
	Values []Value // nil: no list
}

func (b *ReferralBody) decode(body []byte) error {
	*b = ReferralBody{}
	r := newReader("referral", ProtocolError, body)
	if b.Handle = r.handle("handle"); r.err == nil && r.left() > 0 {
		if b.Values = r.values(nil); b.Values == nil {
			b.Values = []Value{}
		}
	}
	return r.end()
}

// Append appends the body.
func (b *ReferralBody) Append(dst []byte, _ Version) []byte {
	if dst = appendStr(dst, b.Handle); b.Values != nil {
		dst = AppendValues(dst, b.Values)
	}
	return dst
}

// ParseResponse reads the digest and the body of a response by its operation and response code.
func ParseResponse(m *Message) (Digest, Body, error) {
	digest, rest, err := SplitDigest(m)
	if err != nil {
		return Digest{}, nil, err
	}
	body, err := parseResponse(m, rest)
	if err != nil {
		return Digest{}, nil, err
	}
	return digest, body, nil
}

func parseResponse(m *Message, body []byte) (Body, error) {
	switch m.Header.Response {
	case Success:
		return parseSuccess(m, body)
	case Challenged:
		r := newReader("challenge", ProtocolError, body)
		b := &ChallengeBody{Nonce: r.str("nonce")}
		if m.Envelope.Version.Before(1) {
			b.MD5 = r.str("digest")
		}
		return b, r.end()
	case ServiceReferral, PrefixReferral:
		// Before 2.5 the code 303 may say that the server makes a backup; its body reads as an empty referral too.
		b := new(ReferralBody)
		return b, b.decode(body)
	}
	b := new(ErrorBody)
	return b, b.decode(body)
}

func parseSuccess(m *Message, body []byte) (Body, error) {
	switch m.Header.Operation {
	case Resolve:
		b := new(ValuesBody)
		return b, b.Decode(body)
	case GetSiteInfo:
		return SiteBody{body}, nil
	case CreateHandle:
		if len(body) == 0 { // 7.x servers do not say the name
			return Empty{}, nil
		}
		b := new(HandleBody)
		return b, b.Decode(body)
	case ListHandles, ListDerived, ListPrefixes:
		r := newReader("list of names", ProtocolError, body)
		b := &NamesBody{r.strings(nil, "names")}
		return b, r.end()
	case VerifyAnswer:
		if len(body) != 1 || body[0] > 1 {
			return nil, errorf(ProtocolError, "hdl.verified", "the answer to the verify request has {octets} octets; 01 or 00 is expected", len(body))
		}
		return VerifiedBody{body[0] == 1}, nil
	case SetUpSession:
		b := new(SessionResponse)
		return b, b.decode(body, m.Envelope.Version)
	}
	if len(body) == 0 {
		return Empty{}, nil
	}
	return Opaque(body), nil
}
