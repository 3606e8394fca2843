package desk

import (
	"encoding/csv"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/web/deskpage"
)

// maxAuditRead is how many entries are read for one page: a filter may pass over many.
const maxAuditRead = 20_000

// operations are those of the audit trail that have words of their own, in the order of the form: all that the registrar knows.
var operations = []string{
	"register", "mint", "mint and register", "update", "add alias", "withdraw", "reinstate", "revive", "revert", "disavow", "redact", "fix data", "begin import", "import", "revert import",
	"propose", "approve proposal", "decline proposal", "take proposal back", "add foreign authority", "remove foreign authority",
	"add namespace", "set namespace", "hand over namespace", "take over namespace", "leave namespace",
	"offer namespace", "seal namespace", "forward namespace", "cancel hand-over", "adopt", "end giver", "bundle", "note bundle", "escrow", "watch registry", "end watch",
	"set link checks", "look at link", "use archived copy", "set usage settings", "count log",
	"add user", "invite user", "set user", "set preferences", "create link", "end link", "sign in", "sign out", "prove", "create token", "revoke token", "open token",
	"add passkey", "rename passkey", "remove passkey", "set password", "remove password", "link identity", "end identity", "ask address", "confirm address", "remove address",
	"publish", "set zone keys", "set TSIG key", "raise zone", "set handle site", "set log keys", "add hosts", "skip counter", "schedule harvest", "shut template",
	"encrypt secret", "encrypt secrets", "rotate secret key",
	"backup", "restore", "compact", "trim audit trail", "authenticate",
}

var outcomes = []stele.AuditOutcome{stele.AuditDone, stele.AuditRefused, stele.AuditFailed}

// auditQuery reads what is asked for from the address of the page, and before which entry.
func (c *call) auditQuery(values url.Values) (q registrar.AuditQuery, before uint64, problems []deskpage.Problem) {
	q = registrar.AuditQuery{By: strings.TrimSpace(values.Get("by")), Operation: values.Get("operation"), Outcome: stele.AuditOutcome(values.Get("outcome")), Via: values.Get("via")}
	add := func(field string, err error) {
		problems = append(problems, deskpage.Problem{Field: field, Text: c.language.Problem(err)})
	}
	if prefix := values.Get("namespace"); prefix != "" {
		key, err := c.h.o.Registrar.ParsePrefix(prefix)
		if err != nil {
			add("namespace", reason(err))
		}
		q.Namespace = key
	}
	for _, day := range []struct {
		field string
		at    *time.Time
		add   time.Duration
	}{{"since", &q.Since, 0}, {"until", &q.Until, 24 * time.Hour}} {
		text := values.Get(day.field)
		if text == "" {
			continue
		}
		t, err := time.Parse(time.DateOnly, text)
		if err != nil {
			add(day.field, stele.Messagef("desk.date-invalid", `"{text}" is not a date; write it as 2026-11-16`, text))
			continue
		}
		*day.at = t.Add(day.add)
	}
	if text := values.Get("before"); text != "" {
		var err error
		if before, err = strconv.ParseUint(text, 10, 64); err != nil {
			add("", stele.Messagef("desk.cursor-invalid", "the address of this page is damaged; search again"))
		}
	}
	return q, before, problems
}

// audit shows the audit trail, the newest entry first.
func (c *call) audit() error {
	values := c.r.URL.Query()
	choice, err := c.choices(values.Get("namespace"), false)
	if err != nil {
		return err
	}
	v := &deskpage.Audit{Frame: c.frame("audit.title", "audit"), Choice: choice, By: values.Get("by"), Since: values.Get("since"), Until: values.Get("until")}
	for _, op := range operations {
		v.Operations = append(v.Operations, deskpage.Option{Value: op, Text: c.language.Text("operation." + slug(op)), Chosen: values.Get("operation") == op})
	}
	if op := values.Get("operation"); op != "" && !slices.Contains(operations, op) { // as requests that were refused are called
		v.Operations = append(v.Operations, deskpage.Option{Value: op, Text: op, Chosen: true})
	}
	for _, way := range auth.Ways() {
		v.Ways = append(v.Ways, deskpage.Option{Value: way, Text: c.language.Text("way." + way), Chosen: values.Get("via") == way})
	}
	for _, o := range outcomes {
		v.Outcomes = append(v.Outcomes, deskpage.Option{Value: string(o), Text: c.language.Text("outcome." + string(o)), Chosen: values.Get("outcome") == string(o)})
	}
	q, before, problems := c.auditQuery(values)
	if v.Problems = problems; len(problems) > 0 {
		return c.show(http.StatusBadRequest, "audit", v)
	}
	last, read := uint64(0), 0
	for item, err := range c.h.o.Registrar.AuditBack(c.ctx, q, before) {
		if err != nil {
			return err
		}
		if read++; len(v.Entries) == pageRows || read > maxAuditRead {
			next := copied(values)
			next.Set("before", strconv.FormatUint(last, 10))
			v.Next = Root + "audit?" + next.Encode()
			break
		}
		if last = item.Number; item.Entry != nil {
			v.Entries = append(v.Entries, c.auditEntry(item.Entry))
		}
	}
	file := copied(values)
	file.Del("before")
	v.CSV = Root + "audit.csv?" + file.Encode()
	v.Same = c.sameAudit(&q)
	return c.show(http.StatusOK, "audit", v)
}

// sameAudit returns the command and the request for a query.
func (c *call) sameAudit(q *registrar.AuditQuery) []deskpage.Same {
	command, query := "stele audit", url.Values{}
	add := func(name, value string) {
		if value != "" {
			command += " --" + name + " " + shellWord(value)
			query.Set(name, value)
		}
	}
	if !q.Since.IsZero() {
		add("since", q.Since.UTC().Format(time.RFC3339))
	}
	if !q.Until.IsZero() {
		add("until", q.Until.UTC().Format(time.RFC3339))
	}
	add("by", q.By)
	add("operation", q.Operation)
	add("outcome", string(q.Outcome))
	add("via", q.Via)
	if q.Namespace != (stele.NamespaceKey{}) {
		add("namespace", q.Namespace.String())
	}
	address := c.base() + "/api/v1/audit"
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	return []deskpage.Same{{Label: c.language.Text("same.command"), Text: command}, {Label: c.language.Text("same.api"), Text: `curl -H "Authorization: Bearer $STELE_TOKEN" '` + address + `'`}}
}

// shellWord quotes a word for a shell, if it must be.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.:/@,=+", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// copied returns a copy of the values in the address of a page, one of each name.
func copied(values url.Values) url.Values {
	c := url.Values{}
	for name := range values {
		if value := values.Get(name); value != "" && name != "done" {
			c.Set(name, value)
		}
	}
	return c
}

// slug returns an operation as a part of a key.
func slug(op string) string { return strings.ToLower(strings.ReplaceAll(op, " ", "-")) }

// auditEntry says an entry in words.
func (c *call) auditEntry(e *stele.AuditEntry) deskpage.AuditEntry {
	v := deskpage.AuditEntry{Number: e.Number, At: e.At, By: e.By, Operation: e.Operation, Outcome: string(e.Outcome), Address: e.Address, Token: e.Token}
	switch {
	case e.System != "":
		v.By = e.System + " (" + c.language.Text("audit.system") + ")"
	case e.By == "":
		v.By = c.language.Text("audit.unknown")
	}
	if key := "did." + slug(e.Operation); c.language.Has(key) {
		v.Did = c.language.Text(key)
	}
	if key := "way." + e.Via; c.language.Has(key) {
		v.Way = c.language.Text(key)
	} else {
		v.Way = e.Via
	}
	v.Outcome = string(e.Outcome)
	v.Object, v.URL = c.auditObject(e)
	if e.Count > 1 {
		v.Count = c.language.Text("audit.count", "count", e.Count)
	}
	if e.Outcome == stele.AuditDone {
		v.Details = c.auditDetails(e.Details)
	} else {
		v.Reason = e.Details
	}
	return v
}

// auditObject names what an operation was done to, and the page of that.
func (c *call) auditObject(e *stele.AuditEntry) (text, address string) {
	kind, name, ok := strings.Cut(e.Object, ":")
	if ok && name == "" && strings.Contains(kind, " ") {
		return "", "" // a cell of which there is one
	}
	if key := "thing." + kind; ok && c.language.Has(key) {
		text = c.language.Text(key, "name", name)
		switch {
		case kind == "user" && c.who.Admin:
			address = personURL(name)
		case kind == "namespace":
			address = Root + "namespace?namespace=" + url.QueryEscape(name)
		}
		return text, address
	}
	if id, err := c.h.o.Schemes.Parse(e.Object); err == nil {
		address = recordURL(id)
	}
	return e.Object, address
}

// auditDetails says the details of an entry in the reader's language, as far as it knows them.
func (c *call) auditDetails(details string) string {
	if roles, ok := strings.CutPrefix(details, "roles: "); ok {
		words := strings.Fields(roles)
		for i, word := range words {
			to, role, _ := strings.Cut(word, "=")
			if c.language.Has("role." + role) {
				words[i] = to + " (" + c.language.Text("role."+role) + ")"
			}
		}
		return strings.Join(words, ", ")
	}
	parts := strings.Split(details, "; ")
	for i, part := range parts {
		word, rest, _ := strings.Cut(part, " ")
		switch {
		case word == "of" && strings.HasPrefix(rest, "user:"):
			parts[i] = c.language.Text("detail.of", "name", strings.TrimPrefix(rest, "user:"))
		case word == "groups:":
			parts[i] = c.language.Text("detail.groups", "names", strings.ReplaceAll(rest, " ", ", "))
		case word == "expires":
			parts[i] = c.language.Text("detail.expires", "day", rest)
		case word == "by" && (c.language.Has("proof."+rest) || strings.HasPrefix(rest, string(auth.ProvedByIssuer))):
			parts[i] = c.howText(auth.Proof(rest))
		case rest == "" && c.language.Has("detail."+word):
			parts[i] = c.language.Text("detail." + word)
		}
	}
	return strings.Join(parts, "; ")
}

// auditCSV sends what a query finds as a file, the newest entry first. If it fails on its way, the
// connection is cut off.
func (c *call) auditCSV() error {
	q, _, problems := c.auditQuery(c.r.URL.Query())
	if len(problems) > 0 {
		return c.audit()
	}
	head := c.w.Header()
	rc := http.NewResponseController(c.w)
	w := csv.NewWriter(c.w)
	begun := false
	for item, err := range c.h.o.Registrar.AuditBack(c.ctx, q, 0) {
		switch {
		case err != nil && !begun:
			return err
		case err != nil:
			if c.r.Context().Err() == nil {
				c.h.o.Log.ErrorContext(c.ctx, "a file of the audit trail could not be sent whole", "error", err.Error())
			}
			_ = rc.SetWriteDeadline(time.Unix(1, 0)) // the end of the body can't be written then
			return nil
		case !begun:
			begun = true
			head.Set("Content-Type", "text/csv; charset=utf-8; header=present")
			head.Set("Content-Disposition", `attachment; filename="audit.csv"`)
			_ = w.Write([]string{"number", "at", "by", "system", "token", "via", "address", "operation", "object", "namespace", "outcome", "kind", "count", "details"}) // Error tells
		}
		if item.Entry != nil {
			_ = w.Write(auditRow(item.Entry))
		}
		if item.Number%1000 == 0 {
			if c.h.o.Patience > 0 { // a client that reads gets the whole file, however long it is
				_ = rc.SetWriteDeadline(c.h.o.Now().Add(c.h.o.Patience))
			}
			if w.Flush(); w.Error() != nil {
				return nil // the client has left
			}
		}
	}
	w.Flush()
	return nil
}

// auditRow returns an entry as a line of the file.
func auditRow(e *stele.AuditEntry) []string {
	kind, namespace := "", ""
	if e.Outcome != stele.AuditDone {
		kind = e.Kind.String()
	}
	if e.Namespace != (stele.NamespaceKey{}) {
		namespace = e.Namespace.String()
	}
	cells := []string{strconv.FormatUint(e.Number, 10), e.At.UTC().Format(time.RFC3339), e.By, e.System, e.Token, e.Via, e.Address, e.Operation, e.Object, namespace, string(e.Outcome), kind,
		strconv.FormatUint(max(e.Count, 1), 10), e.Details}
	for i := range cells {
		cells[i] = bulk.Neutralise(cells[i])
	}
	return cells
}
