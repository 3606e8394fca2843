package ddds

import (
	"cmp"
	"strings"

	"github.com/stele-id/stele"
)

// Offer is a service that a rule offers.
type Offer struct {
	// Service in canonical form: N2L, or N2Ls for a list. I2L means N2L.
	Service stele.Service

	// Type is a media type, or its first half: audio/wav, audio. For N2S it is an
	// algorithm: RSA. It may be empty.
	Type string

	// Token is how the rule writes the service, if that is not Service: I2L. A resolver
	// is asked by it.
	Token stele.Service
}

// String writes the offer as rules do: N2L:audio/wav.
func (o Offer) String() string {
	name := string(cmp.Or(o.Token, o.Service))
	if o.Type == "" {
		return name
	}
	return name + ":" + o.Type
}

// Services is what a service field says. How it is written depends on the flag
// beside it.
type Services struct {
	Protocol string // to speak with the resolver, in lower case: thttp; or ""
	Offers   []Offer
}

// Has reports whether the service is among those offered.
func (s Services) Has(service stele.Service) bool {
	for _, o := range s.Offers {
		if o.Service == service {
			return true
		}
	}
	return false
}

// find returns the offer of a service.
func (s Services) find(service stele.Service) (Offer, bool) {
	for _, o := range s.Offers {
		if o.Service == service {
			return o, true
		}
	}
	return Offer{}, false
}

// instead returns the services that will do where one is not offered: a list of locations
// for a location, or the resource itself.
func instead(service stele.Service) []stele.Service {
	switch service {
	case stele.N2L:
		return []stele.Service{"N2Ls", "N2R"}
	case "N2Ls":
		return []stele.Service{stele.N2L}
	case "N2N":
		return []stele.Service{"N2Ns"}
	case "N2Ns":
		return []stele.Service{"N2N"}
	}
	return nil
}

// ParseService reads a service as users name it: N2L, n2l, or I2L, which is the same.
// There are more than have a meaning today: a new one takes no more than a name of this
// shape, and rules (thesis, 6.3.2).
func ParseService(text string) (stele.Service, error) {
	if !isServiceToken(text) {
		return "", stele.Invalidf("service", 0, "rule.service-malformed", "{text} is not a service; write it as in N2L, I2L or N2Ls", brief(text))
	}
	return canonicalService(text), nil
}

// maxToken is the size of the longest protocol and service (RFC 3404, 4.4).
const maxToken = 32

// ParseServices reads a service field by the grammar that belongs to the flag.
//
// With one of RFC 3404's letters it is protocol *("+" service), as section 4.4
// there has it. With one of the EDDDS's flags it is N2x[:type] with + between
// them; since a media type may have a + itself, one separates only before N2 and
// a letter. Without a flag both may be meant: N2x, I2x and L2x are services,
// perhaps with a type, and anything else is a protocol.
func ParseServices(flag Flag, text string) (Services, error) {
	if text == "" {
		return Services{}, nil
	}
	if len(text) > maxField {
		return Services{}, stele.Invalidf("service", maxField, "rule.field-too-long", "the field has {size} bytes; {most} are the most", len(text), maxField)
	}
	switch {
	case flag.isExtended():
		return parseExtended(text)
	case flag == FlagNone:
		return parseMixed(text)
	}
	return parsePlain(text)
}

// parsePlain reads RFC 3404's grammar. The protocol may be missing; the field
// begins with a + then.
func parsePlain(text string) (s Services, err error) {
	for i, pos := 0, 0; pos <= len(text); i++ {
		token, _, _ := strings.Cut(text[pos:], "+")
		switch {
		case i == 0 && token == "":
		case !isToken(token):
			return Services{}, badToken(pos, token)
		case i == 0:
			s.Protocol = strings.ToLower(token)
		default:
			s.Offers = append(s.Offers, newOffer(token))
		}
		pos += len(token) + 1
	}
	return s, nil
}

// parseExtended reads the EDDDS's grammar.
func parseExtended(text string) (s Services, err error) {
	for pos := 0; pos <= len(text); {
		token := text[pos : pos+offerLen(text[pos:])]
		o, err := parseOffer(token, pos)
		if err != nil {
			return Services{}, err
		}
		if token[0]|0x20 != 'n' || len(o.Service) != len(stele.N2L) {
			return Services{}, stele.Invalidf("service", pos, "rule.service-unknown-here", "{service} is not a service here; use N2L, N2C, N2S or N2P", brief(token))
		}
		s.Offers = append(s.Offers, o)
		pos += len(token) + 1
	}
	return s, nil
}

// parseMixed reads the field of a rule without a flag.
func parseMixed(text string) (s Services, err error) {
	for pos := 0; pos <= len(text); {
		token := text[pos : pos+offerLen(text[pos:])]
		name, _, _ := strings.Cut(token, ":")
		switch {
		case isServiceToken(name):
			o, err := parseOffer(token, pos)
			if err != nil {
				return Services{}, err
			}
			s.Offers = append(s.Offers, o)
		case !isToken(token):
			return Services{}, badToken(pos, token)
		case s.Protocol != "":
			return Services{}, stele.Invalidf("service", pos, "rule.protocol-second", "{protocol} is a second protocol; a rule has one", brief(token))
		default:
			s.Protocol = strings.ToLower(token)
		}
		pos += len(token) + 1
	}
	return s, nil
}

// offerLen returns the size of the first item in text. After a colon only a + before N2 and
// a letter ends it. There the N is a capital: media types are written in lower case, so
// application/x+n2l is one.
func offerLen(text string) int {
	typed := false
	for i := range len(text) {
		switch {
		case text[i] == ':':
			typed = true
		case text[i] != '+':
		case !typed, len(text) > i+3 && text[i+1:i+3] == "N2" && isLetter(text[i+3]):
			return i
		}
	}
	return len(text)
}

// parseOffer reads N2x, perhaps with a type. pos is where it stands in the field.
func parseOffer(token string, pos int) (Offer, error) {
	name, detail, typed := strings.Cut(token, ":")
	if !isServiceToken(name) {
		return Offer{}, stele.Invalidf("service", pos, "rule.service-unknown", "{service} is not a service; use N2L, N2C, N2S or N2P", brief(name))
	}
	o := newOffer(name)
	if !typed {
		return o, nil
	}
	pos += len(name) + 1
	switch {
	case o.Service == stele.N2P:
		return Offer{}, stele.Invalidf("service", pos, "rule.n2p-with-type", "N2P has no type; write N2P alone")
	case o.Service == stele.N2S:
		o.Type = strings.ToUpper(detail)
		if !isAlgorithm(o.Type) {
			return Offer{}, stele.Invalidf("service", pos, "rule.algorithm-malformed", "{text} is not an algorithm; write it as in N2S:RSA or N2S:ED25519", brief(detail))
		}
	default:
		o.Type = strings.ToLower(detail)
		if !isMedia(o.Type) {
			return Offer{}, stele.Invalidf("service", pos, "rule.media-type-malformed", "{text} is not a media type; write it as in N2L:audio/wav or N2L:audio", brief(detail))
		}
	}
	return o, nil
}

func badToken(pos int, token string) error {
	return stele.Invalidf("service", pos, "rule.token-malformed", "{text} is neither a protocol nor a service: a letter, then letters and digits, {most} at most", brief(token), maxToken)
}

// isToken reports whether s is a protocol or a service of RFC 3404's grammar.
func isToken(s string) bool {
	for i := range len(s) {
		if !isLetter(s[i]) && (i == 0 || !isDigit(s[i])) {
			return false
		}
	}
	return s != "" && len(s) <= maxToken
}

// isServiceToken reports whether s is N2x, I2x or L2x, or a list of such (N2Ls).
func isServiceToken(s string) bool {
	if len(s) != 3 && (len(s) != 4 || s[3]|0x20 != 's') {
		return false
	}
	return strings.IndexByte("NILnil", s[0]) >= 0 && s[1] == '2' && isLetter(s[2])
}

// newOffer makes the offer of a token.
func newOffer(token string) Offer {
	o := Offer{Service: canonicalService(token)}
	if token[0]|0x20 == 'i' && isServiceToken(token) {
		o.Token = "I" + o.Service[1:]
	}
	return o
}

// canonicalService returns a service in its one form. An I stands for a URI and an
// N for a URN (RFC 3404, section 4.4.1); a URN is a URI, so they are the same to us.
func canonicalService(token string) stele.Service {
	name := strings.ToUpper(token)
	if !isServiceToken(name) {
		return stele.Service(name)
	}
	if name[0] == 'I' {
		name = "N" + name[1:]
	}
	if len(name) == 4 {
		name = name[:3] + "s"
	}
	return stele.Service(name)
}

// isMedia reports whether s is a media type in lower case without parameters, or
// its first half alone.
func isMedia(s string) bool {
	kind, sub, both := strings.Cut(s, "/")
	return isMediaName(kind) && (!both || isMediaName(sub))
}

// isMediaName reports whether s is a restricted-name in lower case (RFC 6838, 4.2).
func isMediaName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if ('a' > c || c > 'z') && !isDigit(c) && (i == 0 || strings.IndexByte("!#$&-^_.+", c) < 0) {
			return false
		}
	}
	return s != "" && len(s) <= 127
}

// isAlgorithm reports whether s can name a signature algorithm: capitals, digits
// and hyphens.
func isAlgorithm(s string) bool {
	for i := range len(s) {
		if c := s[i]; ('A' > c || c > 'Z') && !isDigit(c) && (c != '-' || i == 0) {
			return false
		}
	}
	return s != "" && len(s) <= maxToken
}

// Field writes the services as they stand beside the flag. What the grammar there
// can't say is an error: a type beside a letter, a protocol beside TYPE:VALUE.
func (s Services) Field(flag Flag) (string, error) {
	var b strings.Builder
	b.WriteString(s.Protocol)
	for i, o := range s.Offers {
		// Without a protocol RFC 3404's field begins with a +.
		if i > 0 || s.Protocol != "" || !flag.isExtended() && flag != FlagNone {
			b.WriteByte('+')
		}
		b.WriteString(o.String())
	}
	text := b.String()
	back, err := ParseServices(flag, text)
	if err != nil {
		return "", err
	}
	if !back.equal(s) {
		return "", stele.Invalidf("service", 0, "rule.service-ambiguous", `{services} would be read as something else beside the flag "{flag}"; give protocols in lower case, types in lower case, and services as N2L`, brief(text), flag)
	}
	return text, nil
}

func (s Services) equal(t Services) bool {
	if s.Protocol != t.Protocol || len(s.Offers) != len(t.Offers) {
		return false
	}
	for i := range s.Offers {
		if s.Offers[i] != t.Offers[i] {
			return false
		}
	}
	return true
}
