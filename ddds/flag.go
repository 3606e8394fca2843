package ddds

import (
	"strings"

	"github.com/stele-id/stele"
)

// Flag says what a rule's output is, in canonical form: a letter of RFC 3404 in
// lower case, or the EDDDS's TYPE:VALUE with DIS's values in upper and RES's in
// lower case. It is read with [ParseFlag]. No flag says that the output is
// another key.
type Flag string

// The flags of RFC 3404, section 4.3, and of the EDDDS's discovery. Those of its
// resolution are made with [Resolved].
const (
	FlagNone     Flag = ""          // the key of more rules
	FlagSRV      Flag = "s"         // a name with SRV records
	FlagAddress  Flag = "a"         // a name with addresses
	FlagURI      Flag = "u"         // a URI
	FlagProtocol Flag = "p"         // whatever the rule's protocol makes of it
	FlagDisA     Flag = "DIS:A"     // a resolver: a name with IPv4 addresses, or one
	FlagDisAAAA  Flag = "DIS:AAAA"  // a resolver: a name with IPv6 addresses, or one
	FlagDisSRV   Flag = "DIS:SRV"   // a resolver: a name with SRV records
	FlagDisURL   Flag = "DIS:URL"   // a resolver: its URL
	FlagDisNAPTR Flag = "DIS:NAPTR" // a resolver: the key of rules that resolve
)

const resolvedPrefix = "RES:"

// maxService is the size of the longest service name: what IANA registers has 15
// characters at most (RFC 6335, section 5.1).
const maxService = 15

// Resolved returns the flag of a rule whose output is a URL of the resource in the
// given protocol, such as RES:https. The protocol is a service name of IANA's.
func Resolved(protocol string) (Flag, error) {
	return ParseFlag(resolvedPrefix + protocol)
}

// ParseFlag reads a flags field. Case does not count, and DIS:AAA is DIS:AAAA: the
// thesis prints it so. Any other text than a known flag is an error; the rule is
// to be ignored then (RFC 3404, section 4.3).
func ParseFlag(text string) (Flag, error) {
	upper := strings.ToUpper(text)
	switch f := Flag(strings.ToLower(text)); f {
	case FlagNone, FlagSRV, FlagAddress, FlagURI, FlagProtocol:
		return f, nil
	}
	if upper == "DIS:AAA" {
		return FlagDisAAAA, nil
	}
	switch f := Flag(upper); f {
	case FlagDisA, FlagDisAAAA, FlagDisSRV, FlagDisURL, FlagDisNAPTR:
		return f, nil
	}
	if !strings.HasPrefix(upper, resolvedPrefix) {
		return "", stele.Invalidf("flags", 0, "rule.flag-unknown", "{flag} is not a flag; use s, a, u, p, DIS: with A, AAAA, SRV, URL or NAPTR, RES: with a protocol, or none", brief(text))
	}
	value := strings.ToLower(text[len(resolvedPrefix):])
	if !isServiceName(value) {
		return "", stele.Invalidf("flags", len(resolvedPrefix), "rule.flag-protocol-malformed", "{protocol} is not a protocol; use a service name of IANA's, such as http", brief(value))
	}
	return Flag(resolvedPrefix + value), nil
}

// ParseWantedFlag reads a flag as users ask for it: whole, as [ParseFlag] reads it, or in
// part, DIS: or RES:, for all that begin so (thesis, 6.2.2).
func ParseWantedFlag(text string) (Flag, error) {
	switch upper := strings.ToUpper(strings.TrimSuffix(text, ":")); upper {
	case "":
		return "", stele.Invalidf("flags", 0, "rule.flag-missing", "there is no flag; name one, such as DIS:SRV or RES:http")
	case "DIS", "RES":
		return Flag(upper + ":"), nil
	}
	return ParseFlag(text)
}

// isServiceName reports whether s has the shape of a service name in lower case
// (RFC 6335, section 5.1): letters, digits and single hyphens inside, with a letter.
func isServiceName(s string) bool {
	letter := false
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z':
			letter = true
		case isDigit(c):
		case c == '-' && i > 0 && i < len(s)-1 && s[i-1] != '-':
		default:
			return false
		}
	}
	return letter && len(s) <= maxService
}

// Output is what a rule's output is, as its flag says.
type Output uint8

const (
	OutputKey  Output = iota // the key of more rules
	OutputSRV                // a name with SRV records
	OutputHost               // a name with addresses, or (with DIS:) an address itself
	OutputURI                // a URI
	OutputText               // what the rule's protocol makes of it
)

// Output tells what the output of a rule with this flag is.
func (f Flag) Output() Output {
	switch f {
	case FlagNone, FlagDisNAPTR:
		return OutputKey
	case FlagSRV, FlagDisSRV:
		return OutputSRV
	case FlagAddress, FlagDisA, FlagDisAAAA:
		return OutputHost
	case FlagProtocol:
		return OutputText
	}
	return OutputURI
}

// IsTerminal reports whether a walk ends at a rule with this flag. DIS:NAPTR ends
// the discovery only.
func (f Flag) IsTerminal() bool { return f.Output() != OutputKey }

// IsResolved reports whether the flag is one of RES: the output is where the
// resource is.
func (f Flag) IsResolved() bool { return strings.HasPrefix(string(f), resolvedPrefix) }

// Protocol returns the protocol of a RES: flag, such as http, and "" of others.
func (f Flag) Protocol() string {
	if !f.IsResolved() {
		return ""
	}
	return string(f[len(resolvedPrefix):])
}

// isExtended reports whether the flag is one of the EDDDS's.
func (f Flag) isExtended() bool { return strings.IndexByte(string(f), ':') >= 0 }

func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
