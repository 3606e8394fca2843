package handle

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/wire/hdl"
)

// Bounds of what proves who a client is.
const (
	maxAuthorization = 16 << 10 // octets of the header, or of the JSON text
	maxFields        = 32
	maxNonce         = 64 // octets; clients use 16

	// maxProved is how many octets of the client's nonce a proof may cover. In answers to challenges of the native protocol the
	// digest of the request stands in its place, with 20 or 32 octets, and the key is the same: a client could be made to answer one
	// whose nonce is that of a session here.
	maxProved = 16
)

// errMalformed says that credentials can't be read.
var errMalformed = stele.Messagef("handle.authentication-malformed", "Malformed authentication data")

// Authorization is what the header of a request says of its sender. At most one of the parts is there.
type Authorization struct {
	Basic  *Basic
	Handle *Fields
}

// Basic is a user and a password (RFC 7617). The user is percent-encoded, since an identity has a colon.
type Basic struct{ User, Password string }

// Fields are those of the scheme Handle, which stand in the header or in a JSON text.
type Fields struct {
	Version, SessionID, ID, Type, Alg string
	ClientCert                        bool

	CNonce, Signature []byte
	Derivation        hdl.Derivation
}

// hasProof reports whether the fields claim an identity.
func (f *Fields) hasProof() bool {
	return f.ID != "" || f.Type != "" || f.Alg != "" || f.Signature != nil
}

// isComplete reports whether the proof has all that it needs.
func (f *Fields) isComplete() bool {
	return f.SessionID != "" && f.ID != "" && f.Type != "" && f.Alg != "" && len(f.Signature) > 0 && len(f.CNonce) > 0
}

// ParseAuthorization reads the value of a header. It returns nil for a scheme that is not of this interface, and an error
// for credentials that can't be read.
func ParseAuthorization(value string) (*Authorization, error) {
	scheme, rest, _ := strings.Cut(strings.TrimLeft(value, " \t"), " ")
	switch {
	case strings.EqualFold(scheme, "Basic"):
		b, err := parseBasic(strings.Trim(rest, " \t"))
		return &Authorization{Basic: b}, err
	case strings.EqualFold(scheme, "Handle"):
		f, err := parseFields(rest)
		return &Authorization{Handle: f}, err
	}
	return nil, nil
}

// parseBasic reads a user and a password.
func parseBasic(text string) (*Basic, error) {
	if len(text) > maxAuthorization {
		return nil, errMalformed
	}
	clear, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errMalformed
	}
	user, password, ok := strings.Cut(string(clear), ":")
	if !ok {
		return nil, errMalformed
	}
	return &Basic{unescaped(user), password}, nil
}

// unescaped decodes what is percent-encoded; a text that can't be decoded stays.
func unescaped(text string) string {
	if decoded, err := url.PathUnescape(text); err == nil {
		return decoded
	}
	return text
}

// parseFields reads name="value" pairs with commas between them (RFC 9110, section 11.2). Clients write some
// values without quotation marks that have signs which those need.
func parseFields(text string) (*Fields, error) {
	if len(text) > maxAuthorization {
		return nil, errMalformed
	}
	given := make(map[string]string)
	for {
		text = strings.TrimLeft(text, " \t,")
		if text == "" {
			break
		}
		name, rest, ok := strings.Cut(text, "=")
		name = strings.ToLower(strings.TrimRight(name, " \t"))
		if !ok || name == "" || strings.ContainsAny(name, "\", \t") || len(given) == maxFields {
			return nil, errMalformed
		}
		value, rest, err := parseValue(strings.TrimLeft(rest, " \t"))
		if err != nil {
			return nil, err
		}
		if _, twice := given[name]; twice {
			return nil, errMalformed
		}
		given[name], text = value, rest
	}
	f, err := newFields(given)
	if err == nil {
		f.ID = unescaped(f.ID)
	}
	return f, err
}

// parseValue reads a value, which ends at a comma, and returns what follows it.
func parseValue(text string) (value, rest string, err error) {
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexAny(text, ", \t")
		if end < 0 {
			end = len(text)
		}
		value, rest = text[:end], text[end:]
	} else {
		var b strings.Builder
		i := 1
		for ; i < len(text) && text[i] != '"'; i++ {
			if text[i] == '\\' {
				i++
			}
			if i < len(text) {
				b.WriteByte(text[i])
			}
		}
		if i >= len(text) {
			return "", "", errMalformed // the quotation mark at its end is missing
		}
		value, rest = b.String(), text[i+1:]
	}
	if rest = strings.TrimLeft(rest, " \t"); rest != "" && rest[0] != ',' {
		return "", "", errMalformed
	}
	return value, rest, nil
}

// newFields makes Fields of texts by their names, which are in lower case. Others are left out.
func newFields(given map[string]string) (*Fields, error) {
	f := &Fields{Version: given["version"], SessionID: given["sessionid"], ID: given["id"], Type: given["type"], Alg: strings.ToUpper(given["alg"]),
		ClientCert: strings.EqualFold(given["clientcert"], "true")}
	var err error
	octets := func(name string) []byte {
		text := given[name]
		if text == "" {
			return nil
		}
		b, wrong := base64.StdEncoding.DecodeString(text)
		if wrong != nil {
			b, wrong = base64.RawStdEncoding.DecodeString(text)
		}
		if wrong != nil {
			err = errMalformed
		}
		return b
	}
	number := func(name string) uint32 {
		text := given[name]
		if text == "" {
			return 0
		}
		n, wrong := strconv.ParseUint(text, 10, 32)
		if wrong != nil {
			err = errMalformed
		}
		return uint32(n)
	}
	f.CNonce, f.Signature, f.Derivation.Salt = octets("cnonce"), octets("signature"), octets("salt")
	f.Derivation.Iterations, f.Derivation.Bits = number("iterations"), number("length")
	if err == nil && len(f.CNonce) > maxNonce {
		err = errMalformed
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// parseJSON reads the fields of an object. Numbers may stand as texts, and the identity is not percent-encoded.
func parseJSON(text []byte) (*Fields, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return &Fields{}, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil || object == nil || len(object) > maxFields {
		return nil, errMalformed
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errMalformed
	}
	given := make(map[string]string, len(object))
	for name, value := range object {
		name = strings.ToLower(name)
		if _, twice := given[name]; twice {
			return nil, errMalformed
		}
		switch value := value.(type) {
		case string:
			given[name] = value
		case json.Number:
			given[name] = value.String()
		case bool:
			given[name] = strconv.FormatBool(value)
		case nil:
		default:
			return nil, errMalformed
		}
	}
	return newFields(given)
}
