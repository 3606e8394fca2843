package ddds

import (
	"fmt"
	"strings"

	"github.com/stele-id/stele"
)

// Fields are those of a NAPTR record (RFC 3403, section 4.1). Texts are the bytes
// on the wire, without a zone file's escapes (see [Unescape]); a domain name is
// written with dots, and may have one at its end.
type Fields struct {
	Order       uint16 `json:"order"`
	Preference  uint16 `json:"preference"`
	Flags       string `json:"flags"`
	Service     string `json:"service"`
	Regexp      string `json:"regexp"`
	Replacement string `json:"replacement"`
}

// String writes the fields as a zone file has them.
func (f Fields) String() string {
	name := f.Replacement
	if name == "" {
		name = "."
	}
	return fmt.Sprintf(`%d %d "%s" "%s" "%s" %s`, f.Order, f.Preference,
		Escape(f.Flags), Escape(f.Service), Escape(f.Regexp), Escape(name))
}

// Dialect is a way to read NAPTR records.
type Dialect uint8

const (
	// Standard is that of the RFCs, with the EDDDS's flags and services.
	Standard Dialect = iota

	// Thesis reads also what the thesis prints: a pattern alone in the regexp field,
	// and a URL or a name for all that it matches in the replacement field. It is for
	// zones that are known to be written so. No rule is written so.
	Thesis
)

// Rule is a rewriting rule: what it applies to, what it makes of it, and which services it
// offers. It is read from a record with [ParseRule], or put together and written with
// [Rule.Fields].
type Rule struct {
	Order      uint16 // lower first; once a rule matches, higher ones are not looked at
	Preference uint16 // within an order, lower first
	Flag       Flag
	Services   Services

	// One of these two: what to make of a name that matches, or the key for all
	// names.
	Expression  *Expression
	Replacement string

	fields Fields // as read
	fault  error  // why it can't be used
}

// ParseRule reads a NAPTR record. With an error the Rule is there too: it tells
// its fields and why it can't be used, and a walk skips it.
func ParseRule(f Fields, d Dialect) (Rule, error) {
	r := Rule{Order: f.Order, Preference: f.Preference, fields: f}
	r.fault = r.parse(f, d)
	return r, r.fault
}

// ParseRules reads the records of a set. Those that can't be used are among them.
func ParseRules(records []Fields, d Dialect) []Rule {
	rules := make([]Rule, len(records))
	for i, f := range records {
		rules[i], _ = ParseRule(f, d) // the rule holds its error
	}
	return rules
}

func (r *Rule) parse(f Fields, d Dialect) (err error) {
	if r.Flag, err = ParseFlag(f.Flags); err != nil {
		return unknownFlag{err}
	}
	if d == Thesis && !r.Flag.isExtended() {
		r.Services, err = ParseServices(FlagNone, f.Service) // it knows no protocols
	} else {
		r.Services, err = ParseServices(r.Flag, f.Service)
	}
	if err != nil {
		return err
	}
	replacement := strings.TrimSuffix(f.Replacement, ".")
	switch {
	case f.Regexp != "" && replacement != "" && d == Thesis:
		r.Expression, err = parsePattern(f.Regexp, replacement)
	case f.Regexp != "":
		if r.Expression, err = ParseExpression(f.Regexp); err == nil {
			r.Replacement = replacement
			err = r.checkSides()
		}
	default:
		r.Replacement = replacement
		err = r.checkSides()
	}
	return err
}

// unknownFlag is the fault of a rule that is ignored for its flag, before all else
// (RFC 3404, section 4.3).
type unknownFlag struct{ error }

func (u unknownFlag) Unwrap() error { return u.error }

// checkSides makes sure that there is a regexp or a replacement, and not both (RFC
// 3403, section 4.1).
func (r *Rule) checkSides() error {
	switch {
	case r.Expression != nil && r.Replacement != "":
		return stele.Invalidf("replacement", 0, "rule.regexp-and-replacement", "there are a regexp and a replacement; a rule has one of them (RFC 3403, 4.1)")
	case r.Expression == nil && r.Replacement == "":
		return stele.Invalidf("replacement", 0, "rule.regexp-and-replacement-missing", "there is neither a regexp nor a replacement")
	}
	return nil
}

// Err tells why the rule can't be used, nil if it can.
func (r *Rule) Err() error {
	if r.fault != nil {
		return r.fault
	}
	return r.checkSides()
}

// Fields returns the record that says what the rule says, as we publish it: within
// RFC 3403's limits, and such that BIND, Knot, NSD and PowerDNS load it and give
// it back unchanged. An error says what can't be written so.
func (r *Rule) Fields() (Fields, error) {
	if err := r.Err(); err != nil {
		return Fields{}, err
	}
	if flag, err := ParseFlag(string(r.Flag)); err != nil || flag != r.Flag {
		return Fields{}, stele.Invalidf("flags", 0, "rule.flag-not-canonical", "{flag} is not a flag in its canonical form", brief(string(r.Flag)))
	}
	service, err := r.Services.Field(r.Flag)
	if err != nil {
		return Fields{}, err
	}
	f := Fields{r.Order, r.Preference, string(r.Flag), service, "", "."}
	if r.Expression != nil {
		if err := r.Expression.portable(); err != nil {
			return Fields{}, err
		}
		f.Regexp = r.Expression.String()
		return f, nil
	}
	if r.Flag.Output() == OutputURI {
		return Fields{}, stele.Invalidf("replacement", 0, "rule.replacement-not-a-uri", "a replacement is a domain name and the flag {flag} asks for a URI; write an expression, such as !.*!URI!", r.Flag)
	}
	if f.Replacement, err = CanonicalName(r.Replacement); err != nil {
		return Fields{}, err
	}
	return f, nil
}

// asRead returns the fields as they were read, or as they would be written.
func (r *Rule) asRead() Fields {
	if r.fields != (Fields{}) {
		return r.fields
	}
	f, err := r.Fields()
	if err != nil {
		f = Fields{r.Order, r.Preference, string(r.Flag), "", "", r.Replacement}
	}
	return f
}

// String writes the rule as a zone file has it.
func (r *Rule) String() string { return r.asRead().String() }
