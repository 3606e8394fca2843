package stele

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of a target.
const (
	MaxURL = 2000              // bytes; what every client and proxy takes
	MaxTTL = 30 * 24 * 60 * 60 // seconds: 30 days, after which a mistake is out of every cache
)

// protocols are what a target's URL may begin with. A resolver sends people there
// unasked, so these are protocols that name a host and fetch something from it.
// Not among them, on purpose: what runs or shows the URL's own text in the page
// that led there (javascript, vbscript, data, blob, view-source), what reaches
// into the reader's machine (file, jar, chrome, about), what opens a session or
// writes (ssh, telnet, ldap, mailto), and all that have not been reviewed. A namespace
// may allow fewer, never more.
const (
	protocols    = "http https ftp ftps sftp rsync rtsp"
	MaxProtocols = 7
)

// isProtocol reports whether name, in lower case, is one of protocols.
func isProtocol(name string) bool {
	switch name {
	case "https", "http", "ftp", "ftps", "sftp", "rsync", "rtsp":
		return true
	}
	return false
}

// IsTargetProtocol reports whether the URL of a target may have a protocol, in lower case.
func IsTargetProtocol(name string) bool { return isProtocol(name) }

// Protocol returns the protocol of the target's URL in lower case: "https"; "" if
// it has none.
func (t Target) Protocol() string {
	protocol, _, _ := strings.Cut(t.URL, ":")
	if len(protocol) == len(t.URL) {
		return ""
	}
	return strings.ToLower(protocol)
}

// Host returns the host that the target's URL points at, in lower case, without
// port and without the brackets of an IPv6 address; "" if it has none.
func (t Target) Host() string {
	_, rest, ok := strings.Cut(t.URL, "://")
	if !ok {
		return ""
	}
	host, _ := splitAuthority(authority(rest))
	return strings.ToLower(strings.Trim(host, "[]"))
}

// authority returns the part of a URL before its path, query and fragment.
func authority(rest string) string {
	for i := range len(rest) {
		if c := rest[i]; c == '/' || c == '?' || c == '#' {
			return rest[:i]
		}
	}
	return rest
}

// splitAuthority splits host and port. The port has its colon before it.
func splitAuthority(authority string) (host, port string) {
	for i := len(authority) - 1; i >= 0 && authority[i] != ']'; i-- {
		if authority[i] == ':' {
			return authority[:i], authority[i:]
		}
	}
	return authority, ""
}

// check tells what is wrong with a target, whose path is given by list and index.
func (t *Target) check(f *Report, i int) {
	tell := func(field string, reason *Message) {
		f.Add(FieldPath(ItemPath("targets", i), field), reason)
	}
	t.checkService(tell)
	if reason := checkURL(t.URL); reason != nil {
		tell("url", reason)
	}
	t.checkKind(tell)
	if t.TTL > MaxTTL {
		tell("ttl", ttlReason(t.TTL))
	}
	if !isStatus(t.Status) {
		tell("status", statusReason(t.Status))
	}
}

func (t *Target) checkService(tell func(field string, reason *Message)) {
	if !t.Service.IsValid() {
		tell("service", Messagef("target.service-unknown", `"{service}" is not a service; use N2L (the thing), N2C (its metadata), N2S (its signature), N2P (its persistence), or N2 and another letter than N and R for a service of your own`, string(t.Service)))
	}
}

// checkKind judges media type and language.
func (t *Target) checkKind(tell func(field string, reason *Message)) {
	if t.Type != "" {
		if reason := checkMediaType(t.Type); reason != nil {
			tell("type", reason)
		}
	}
	if t.Language != "" && !isLanguage(t.Language) {
		tell("language", Messagef("target.language-invalid", `"{language}" is not a language tag; write it as in BCP 47, such as en, pt-BR or zh-Hant`, t.Language))
	}
}

// isStatus reports whether a redirect may have this status: 0 stands for the
// default; 404 and 410 say that the thing is not, or no longer, to be had.
func isStatus(status int) bool {
	switch status {
	case 0, 301, 302, 303, 307, 308, 404, 410:
		return true
	}
	return false
}

func statusReason(status int) *Message {
	return Messagef("redirect.status-invalid", "{status} is not a status of a redirect; use 301, 302, 303, 307, 308, 404 or 410, or leave it out", status)
}

func ttlReason(ttl uint32) *Message {
	return Messagef("ttl.too-long", "{seconds} seconds are too long; {most} (30 days) are the most", ttl, MaxTTL)
}

// CheckURL returns an error if url can't be the URL of a target: its protocol is not one that
// is safe to redirect to, it has no host, or it is not a URL.
func CheckURL(url string) error {
	if reason := checkURL(url); reason != nil {
		return reason
	}
	return nil
}

// checkURL says why url must not be a target, or "". A URL is what RFC 3986 calls
// one, with a protocol that is safe and a host, in ASCII. It is kept as it is.
func checkURL(url string) *Message {
	if url == "" {
		return Messagef("url.missing", "is missing; give the address, such as https://example.org/1")
	}
	if len(url) > MaxURL {
		return tooManyBytes(len(url), MaxURL)
	}
	protocol, rest, ok := strings.Cut(url, ":")
	if !ok || !isProtocol(protocol) && !isProtocol(strings.ToLower(protocol)) {
		return Messagef("url.protocol-not-allowed", `"{url}" does not begin with a protocol that is allowed; use one of {protocols}, followed by ://`, url, strings.ReplaceAll(protocols, " ", ", "))
	}
	if rest, ok = strings.CutPrefix(rest, "//"); !ok {
		return Messagef("url.not-absolute", `"{url}" is not absolute; write {protocol}:// and the host`, url, protocol)
	}
	auth := authority(rest)
	if reason := checkAuthority(auth); reason != nil {
		return reason
	}
	return checkURLText(rest[len(auth):], len(url)-len(rest)+len(auth))
}

// checkURLText checks the characters after the host; offset is where they begin.
// Brackets are not for this place in RFC 3986 (3.3, 3.4), but half the world's queries
// have them, and every client takes them.
func checkURLText(text string, offset int) *Message {
	fragment := false
	for i := 0; i < len(text); i++ {
		if urlText[text[i]] {
			continue
		}
		switch text[i] {
		case '%':
			if i+2 >= len(text) || !isHex(text[i+1]) || !isHex(text[i+2]) {
				return Messagef("url.percent-encoding", "at byte {position}: after % come two hexadecimal digits; write %25 for the sign itself", offset+i)
			}
			i += 2
		case '#':
			if fragment {
				return Messagef("url.second-fragment", "at byte {position}: a second #; write %23 for the sign itself", offset+i)
			}
			fragment = true
		default:
			r, n := utf8.DecodeRuneInString(text[i:])
			return Messagef("url.character", "at byte {position}: {character} can't stand in a URL; write {encoded}", offset+i, Describe(r), percent(text[i:i+n]))
		}
	}
	return nil
}

// percent returns the percent-encoding of s.
func percent(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02X", s[i])
	}
	return b.String()
}

// urlText has the characters of path, query and fragment, except % and #.
var urlText = func() (set [256]bool) {
	for c := range set {
		set[c] = isLetter(byte(c)) || isDigit(byte(c)) || c < 0x80 && strings.ContainsRune("-._~:/?[]@!$&'()*+,;=", rune(c))
	}
	return set
}()

// hostText has the characters of host names, except the dot. RFC 952 has no underscore,
// but there are hosts that have one.
var hostText = func() (set [256]bool) {
	for c := range set {
		set[c] = isLetter(byte(c)) || isDigit(byte(c)) || c == '-' || c == '_'
	}
	return set
}()

// checkAuthority judges what stands between // and the path.
func checkAuthority(auth string) *Message {
	if strings.Contains(auth, "@") {
		return Messagef("url.user-information", "has a user's name or password before the host; remove it with its @")
	}
	host, port := splitAuthority(auth)
	if port != "" {
		if _, err := strconv.ParseUint(port[1:], 10, 16); err != nil || port[1] == '0' {
			return Messagef("url.port-invalid", `"{port}" is not a port; write a number from 1 to 65535, or nothing`, port)
		}
	}
	return checkHost(host)
}

// checkHost says why host is neither a host name nor an IP address (IPv6 in
// brackets), or "". A name that ends in a number would be taken for an IPv4
// address by browsers, in spellings such as 0x7f.1; so it has to be one.
func checkHost(host string) *Message {
	if host == "" {
		return Messagef("url.host-missing", "has no host; write it after ://")
	}
	if host[0] == '[' {
		addr, err := netip.ParseAddr(strings.TrimSuffix(host[1:], "]"))
		if err != nil || !addr.Is6() || addr.Zone() != "" || host[len(host)-1] != ']' {
			return Messagef("host.not-ipv6", `"{host}" is not an IPv6 address in brackets`, host)
		}
		return nil
	}
	if len(host) > 253 {
		return Messagef("host.too-long", "has a host name of more than {most} bytes", 253)
	}
	label := 0 // where the present label begins
	for i := 0; i <= len(host); i++ {
		if i < len(host) && host[i] != '.' {
			if !hostText[host[i]] {
				r, _ := utf8.DecodeRuneInString(host[i:])
				if r >= utf8.RuneSelf {
					return Messagef("host.not-ascii", "has {character} in its host; write the host in its ASCII form, which begins with xn--", Describe(r))
				}
				return Messagef("host.character", "has {character} in its host; a host has letters, digits, hyphens and dots", Describe(r))
			}
			continue
		}
		if i == label || i-label > 63 || host[label] == '-' {
			return Messagef("host.label-invalid", `"{host}" is not a host; between its dots are 1 to 63 characters, the first no hyphen`, host)
		}
		if i < len(host) {
			label = i + 1
		}
	}
	if isDigit(host[label]) && isNumber(host[label:]) {
		if addr, err := netip.ParseAddr(host); err != nil || !addr.Is4() {
			return Messagef("host.ends-in-number", `"{host}" ends in a number and is not an IPv4 address such as 192.0.2.1`, host)
		}
	}
	return nil
}

// isNumber reports whether browsers read a host's last label as a number (URL
// Standard, "ends in a number").
func isNumber(label string) bool {
	digit := isDigit
	if hex, ok := strings.CutPrefix(strings.ToLower(label), "0x"); ok {
		label, digit = hex, isHex
	}
	for i := range len(label) {
		if !digit(label[i]) {
			return false
		}
	}
	return true
}
