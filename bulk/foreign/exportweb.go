package foreign

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
)

// The files for web servers, which redirect by a list.
const (
	Htaccess Target = "htaccess"  // of Apache httpd
	NginxMap Target = "nginx-map" // of nginx
)

// maxPartial bounds the partial names of an export, which are sorted in memory.
const maxPartial = 100_000

// ExportWeb writes the redirects of the records whose identifiers begin with one of the prefixes, for a web server: of each name in the
// spellings that its scheme knows, to the first location of the record; and the rules of their namespaces, as far as a web server can follow
// them. It leaves out records that are reserved or for some readers only. Told, progress and the result are those of [Export].
func ExportWeb(ctx context.Context, from bulk.Source, keys []stele.NamespaceKey, schemes *stele.Schemes, out io.Writer, to Target, told func(name string, what error), progress func(rows int)) (Exported, error) {
	x := &webExport{from: from, keys: keys, schemes: schemes, out: out, to: to, told: told, progress: progress, statuses: make(map[int]bool)}
	for ns, err := range from.Namespaces(ctx) {
		if err != nil {
			return x.done, err
		}
		x.spaces = append(x.spaces, ns)
	}
	x.prepareRules(func(ns *stele.Namespace) bool {
		return slices.ContainsFunc(keys, func(key stele.NamespaceKey) bool {
			return key.Scheme == "" || ns.Scheme == key.Scheme && strings.HasPrefix(ns.Prefix, key.Prefix)
		})
	})
	write := x.nginx
	if to == Htaccess {
		write = x.htaccess
	}
	err := write(ctx)
	return x.done, err
}

// webExport is an export under way.
type webExport struct {
	from     bulk.Source
	keys     []stele.NamespaceKey
	schemes  *stele.Schemes
	out      io.Writer
	to       Target
	told     func(string, error)
	progress func(int)
	lines    int // of the first pass
	spaces   []*stele.Namespace
	sets     []webSet  // the rules that are exported, also those that the file can't have
	rules    []webRule // in the order in which they are tried
	done     Exported
	statuses map[int]bool
	partial  []redirect
	host     string // of the names that are URLs
}

// redirect is a line of the file.
type redirect struct {
	path    string // of the name, decoded, with a slash before
	url     string // "" if it is gone
	status  int    // 0 if the record leads nowhere: no rule answers for its name
	fold    bool   // letters of the path are the same in either case
	partial bool   // what follows the path is appended to the URL
}

// each calls f with the redirects of all records. Only the first time it counts and tells.
func (x *webExport) each(ctx context.Context, first bool, f func(r redirect) error) error {
	lines := 0
	for _, key := range x.keys {
		for rec, err := range x.from.Export(ctx, key, false) {
			if err != nil {
				return err
			}
			if first && x.progress != nil {
				x.progress(1)
			}
			list := x.redirects(rec, first)
			lines += len(list)
			for _, r := range list {
				if r.partial {
					if first {
						if len(x.partial) >= maxPartial {
							return failf(stele.Exhausted, "export.too-many-partial", "more than {most} names pass on what follows them; export the namespaces one by one", maxPartial)
						}
						x.partial = append(x.partial, r)
					}
					continue
				}
				if err := f(r); err != nil {
					return err
				}
			}
		}
	}
	if !first && lines != x.lines {
		return failf(stele.Conflict, "export.web-changed", "the registry was changed during the export; export again")
	}
	if first { // a longer name wins
		x.lines = lines
		slices.SortStableFunc(x.partial, func(a, b redirect) int { return cmp.Compare(len(b.path), len(a.path)) })
	}
	return nil
}

// redirects returns the lines for a record.
func (x *webExport) redirects(rec *stele.Record, first bool) (list []redirect) {
	count := func(n *int) {
		if first {
			*n++
		}
	}
	tell := func(err error) {
		if first {
			x.told(rec.ID.String(), err)
		}
	}
	switch {
	case rec.State == stele.Reserved || rec.Redacted || len(rec.Readers) > 0:
		count(&x.done.Hidden)
		return nil
	case rec.State == stele.Withdrawn:
		list = append(list, redirect{status: http.StatusGone})
		if slices.ContainsFunc(rec.Targets, func(t stele.Target) bool { return t.Partial }) {
			list = append(list, redirect{status: http.StatusGone, partial: true})
		}
	default:
		targets := slices.DeleteFunc(slices.Clone(rec.Targets), func(t stele.Target) bool { return t.Service != stele.N2L })
		slices.SortStableFunc(targets, func(a, b stele.Target) int {
			return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Preference, b.Preference))
		})
		if len(targets) == 0 {
			count(&x.done.Others)
			return x.unanswered(rec)
		}
		if len(targets) > 1 {
			count(&x.done.Choices)
		}
		t := targets[0]
		r := redirect{url: t.URL, status: cmp.Or(t.Status, x.statusOf(rec.ID), http.StatusFound)}
		if r.status == http.StatusNotFound || r.status == http.StatusGone {
			r.url, r.status = "", http.StatusGone
		}
		list = append(list, r)
		if t.Partial && r.url != "" {
			if u, err := url.Parse(r.url); err == nil && u.Path == "" && u.RawQuery == "" && u.Fragment == "" {
				r.url += "/" // what follows must not become a part of the host
			}
			r.partial = true
			list = append(list, r)
		}
	}
	for _, r := range list {
		if r.url != "" && !isPlainURL(r.url) {
			tell(stele.Messagef("export.web-url", "it is left out: its location has characters that such a file can't say"))
			return x.unanswered(rec)
		}
	}
	var all []redirect
	for _, id := range rec.Names() {
		paths, host := x.paths(id)
		if x.host = cmp.Or(x.host, host); host != "" && host != x.host {
			tell(stele.Messagef("export.web-host", "{name} is left out: the file is for the names of {host}; export those of the other host by themselves", id, x.host))
			continue
		}
		for _, path := range paths {
			if !isPlainPath(path) {
				tell(stele.Messagef("export.web-path", "{path} is left out: web servers change such a path before they look it up", path))
				continue
			}
			fold := x.folds(id)
			for _, r := range list {
				r.path, r.fold = path, fold
				all = append(all, r)
			}
		}
	}
	for _, r := range all {
		if first {
			x.statuses[r.status] = true
		}
	}
	if len(all) > 0 {
		count(&x.done.Records)
	}
	return all
}

// unanswered returns lines for a record without a redirect, for whose names rules would answer otherwise.
func (x *webExport) unanswered(rec *stele.Record) (list []redirect) {
	for _, id := range rec.Names() {
		if !x.answeredByRule(id) {
			continue
		}
		paths, host := x.paths(id)
		for _, path := range paths {
			if isPlainPath(path) && (host == "" || host == x.host) {
				list = append(list, redirect{path: path, fold: x.folds(id)})
			}
		}
	}
	return list
}

// statusOf returns the status of redirects in the namespace of a name; 0 if it has none of its own.
func (x *webExport) statusOf(id stele.ID) (status int) {
	longest := -1
	for _, ns := range x.spaces {
		if ns.Scheme == id.Scheme() && len(ns.Prefix) > longest && strings.HasPrefix(id.String(), ns.Prefix) {
			longest, status = len(ns.Prefix), ns.Status
		}
	}
	return status
}

// paths returns the paths under which a name is asked for: a URL's own at its host, or the name in all spellings that are not URLs.
// They are decoded, as web servers compare them. An encoded slash stays as it is, so that the path is told as one that web servers change.
func (x *webExport) paths(id stele.ID) (list []string, host string) {
	text := id.String()
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		return []string{decoded(u.EscapedPath())}, u.Host
	}
	if !strings.Contains(text, "%") {
		list = append(list, "/"+text)
		for _, s := range x.schemes.Spellings(id) {
			if path := "/" + s.Text; !strings.ContainsAny(s.Text, " %") && !strings.Contains(s.Text, "://") && !slices.Contains(list, path) {
				list = append(list, path)
			}
		}
		return list, ""
	}
	for _, s := range x.schemes.Spellings(id) {
		if plain, err := url.PathUnescape(s.Text); err == nil && strings.Contains(s.Text, "://") && strings.HasSuffix(plain, text) {
			return []string{"/" + text}, "" // as in handles, the percent sign is one
		}
	}
	return []string{decoded("/" + text)}, ""
}

// decoded decodes a path, unless a slash is encoded in it.
func decoded(path string) string {
	plain, err := url.PathUnescape(path)
	if err != nil || strings.Contains(strings.ToUpper(path), "%2F") {
		return path + "//"
	}
	return plain
}

// folds reports whether letters of a name are the same in either case.
func (x *webExport) folds(id stele.ID) bool {
	text := id.String()
	other := strings.ToLower(text)
	if other == text {
		other = strings.ToUpper(text)
	}
	same, err := x.schemes.Parse(other)
	return err == nil && same == id
}

// isPlainURL reports whether a URL has only characters that stand in a URL as they are.
func isPlainURL(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"<>\\^`{|}", r) }) < 0
}

// isPlainPath reports whether web servers leave a path as it is: they merge slashes, and resolve dots.
func isPlainPath(path string) bool {
	if strings.Contains(path, "//") || strings.IndexFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }) >= 0 {
		return false
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return false
		}
	}
	return true
}

// appended is what may follow a partial name: no character by which a header could be ended or a URL broken.
const appended = `[A-Za-z0-9._~!&'()*+,;=:@/-]`

// pattern returns a path as a regular expression, for a quoted word of a configuration.
func pattern(path string) string {
	var b strings.Builder
	for _, c := range []byte(path) {
		switch {
		case 'a' <= c|0x20 && c|0x20 <= 'z', '0' <= c && c <= '9', strings.IndexByte("/:_-@,;=", c) >= 0, c >= 0x80:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String()
}

const htaccessHead = `# Redirects of persistent identifiers for Apache httpd. Put this into the .htaccess file of the site's root, or into
# <Directory>, with AllowOverride FileInfo and mod_rewrite.
RewriteEngine On
`

// htaccess writes rules for Apache httpd.
func (x *webExport) htaccess(ctx context.Context) error {
	if _, err := io.WriteString(x.out, htaccessHead); err != nil {
		return err
	}
	var b bytes.Buffer
	write := func(r redirect) error {
		b.Reset()
		rule(&b, r)
		_, err := x.out.Write(b.Bytes())
		return err
	}
	if err := x.each(ctx, true, write); err != nil {
		return err
	}
	for i := range x.rules { // the resolver tries them before partial names
		b.Reset()
		apacheRule(&b, &x.rules[i])
		if _, err := x.out.Write(b.Bytes()); err != nil {
			return err
		}
	}
	for _, r := range x.partial {
		if err := write(r); err != nil {
			return err
		}
	}
	return nil
}

// rule writes one rule. In the file of a folder paths have no slash before. QSD keeps the query of the reader from being appended, which
// partial names pass on; NE keeps what is encoded in the URL as it is.
func rule(b *bytes.Buffer, r redirect) {
	end, place, flags := "$", "", "QSD,NE,L"
	if r.partial {
		end, place, flags = "("+appended+"+)$", "$1", "QSA,NE,L"
	}
	if r.fold {
		flags = "NC," + flags
	}
	fmt.Fprintf(b, `RewriteRule "^%s%s" `, pattern(strings.TrimPrefix(r.path, "/")), end)
	if r.status == 0 {
		b.WriteString("- [L]\n")
		return
	}
	if r.url == "" {
		fmt.Fprintf(b, "- [R=%d,%s]\n", r.status, flags)
		return
	}
	fmt.Fprintf(b, "\"%s%s\" [R=%d,%s]\n", substitution.Replace(r.url), place, r.status, flags)
}

// substitution escapes what mod_rewrite would fill in.
var substitution = strings.NewReplacer(`%`, `\%`, `$`, `\$`)

const nginxHead = `# Redirects of persistent identifiers for nginx. Include this file in the http block, and in the server block write:
#
#     merge_slashes off;
%s#
# Strings of a map are looked up without regard to case. For many names set map_hash_max_size and map_hash_bucket_size.
`

// nginx writes a map of paths to a status and a URL.
func (x *webExport) nginx(ctx context.Context) error {
	seed := maphash.MakeSeed()
	var seen []uint64
	if err := x.each(ctx, true, func(r redirect) error {
		seen = append(seen, maphash.String(seed, strings.ToLower(r.path)))
		return nil
	}); err != nil {
		return err
	}
	slices.Sort(seen)
	twins := make(map[uint64]bool)
	for i := range seen[min(1, len(seen)):] {
		if seen[i] == seen[i+1] {
			twins[seen[i]] = true
		}
	}
	seen = nil
	isTwin := func(r redirect) bool { return twins[maphash.String(seed, strings.ToLower(r.path))] }
	if _, err := fmt.Fprintf(x.out, nginxHead, x.nginxUse()); err != nil {
		return err
	}
	if err := x.nginxTypes(); err != nil {
		return err
	}
	return x.nginxMap(ctx, isTwin)
}

// nginxMap writes the map of paths. Paths that differ in case only are written as patterns, which are looked up with regard to
// case, but one after the other: so the others are strings. Strings come before patterns, wherever they stand.
func (x *webExport) nginxMap(ctx context.Context, isTwin func(redirect) bool) error {
	if _, err := io.WriteString(x.out, "map $uri $stele {\n    default \"\";\n"); err != nil {
		return err
	}
	write := func(r redirect) error {
		value := ""
		switch {
		case r.url != "":
			value = fmt.Sprintf("%d %s", r.status, strings.ReplaceAll(r.url, "$", "%24"))
		case r.status != 0:
			value = fmt.Sprint(r.status)
		}
		key := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(r.path)
		switch {
		case !r.partial && !r.fold && isTwin(r):
			key = "~^" + pattern(r.path) + "$"
		case r.partial:
			mark := "~"
			if r.fold {
				mark = "~*"
			}
			key = mark + "^" + pattern(r.path) + "(?<stele_rest>" + appended + "+)$"
			if r.url != "" {
				value += "$stele_rest"
			}
		}
		_, err := fmt.Fprintf(x.out, "    \"%s\" \"%s\";\n", key, value)
		return err
	}
	if err := x.each(ctx, false, write); err != nil {
		return err
	}
	for _, r := range x.rules { // the resolver tries them before partial names
		mark, value := "~", nginxAnswer(r.number, r.choices[0])
		if r.fold {
			mark = "~*"
		}
		if len(r.choices) > 1 {
			value = fmt.Sprintf("$stele_%d", r.number)
		}
		if _, err := fmt.Fprintf(x.out, "    \"%s%s$\" \"%s\";\n", mark, r.expression, value); err != nil {
			return err
		}
	}
	for _, r := range x.partial {
		if err := write(r); err != nil {
			return err
		}
	}
	_, err := io.WriteString(x.out, "}\n")
	return err
}
