// Package audit has the forms in which entries of the audit trail leave the registry: JSON
// for programs and files, a line for people, and messages for syslog (RFC 5424). It writes
// what it is given, in order; it never reads a store and never decides which callers may
// read.
package audit

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// Document is the JSON form of an entry.
type Document struct {
	Number    uint64    `json:"number" doc:"Its place in the trail. Numbers have no gaps." minimum:"1"`
	At        time.Time `json:"at"`
	By        string    `json:"by,omitempty" doc:"The user. Without it the caller was not known."`
	Token     string    `json:"token,omitempty" doc:"The ID of the token that the user showed."`
	System    string    `json:"system,omitempty" doc:"The user of the operating system, for a command on a folder or a database."`
	Via       string    `json:"via,omitempty" doc:"The way in: desk, api, ezid, handle, lsid, harvest, command, resolver or server."`
	Address   string    `json:"address,omitempty" doc:"The client's address, if the server keeps addresses."`
	Operation string    `json:"operation" doc:"What was done." example:"create token"`
	Object    string    `json:"object,omitempty" doc:"To what." example:"token:4k2m9x0q7rbc"`
	Scheme    string    `json:"scheme,omitempty" doc:"The scheme of the namespace that it concerns."`
	Namespace string    `json:"namespace,omitempty" doc:"The prefix of that namespace; without it, with a scheme, the root of the scheme."`
	Outcome   string    `json:"outcome" enum:"done,refused,failed"`
	Kind      string    `json:"kind,omitempty" doc:"Why it was refused, or why it failed." example:"forbidden"`
	Count     uint64    `json:"count,omitempty" doc:"How many times, or how many objects, if it is not one."`
	Trimmed   uint64    `json:"trimmed,omitempty" doc:"The number of the last entry that was removed by trimming."`
	Details   string    `json:"details,omitempty"`
}

// Page is a part of the trail, in JSON.
type Page struct {
	Items []Document `json:"items"`
	After uint64     `json:"after" doc:"Up to which number the trail was read. Ask with this as after for what follows."`
	Last  bool       `json:"last" doc:"The end of the trail was reached; more may come later."`
}

// NewDocument returns the JSON form of an entry.
func NewDocument(e *stele.AuditEntry) Document {
	d := Document{
		Number: e.Number, At: e.At, By: e.By, Token: e.Token, System: e.System, Via: e.Via, Address: e.Address,
		Operation: e.Operation, Object: e.Object, Scheme: e.Namespace.Scheme, Namespace: e.Namespace.Prefix,
		Outcome: string(e.Outcome), Trimmed: e.Trimmed, Details: e.Details,
	}
	if e.Count > 1 {
		d.Count = e.Count
	}
	if e.Outcome != stele.AuditDone {
		d.Kind = e.Kind.String()
	}
	return d
}

// JSON returns the entry as one line of JSON, without its end. Control characters are
// escaped, so that no text in an entry can begin another line.
func JSON(e *stele.AuditEntry) []byte {
	text, err := json.Marshal(NewDocument(e))
	if err != nil { // texts, numbers and a time of this age can be written
		return fmt.Appendf(nil, `{"number":%d}`, e.Number)
	}
	return text
}

// Line returns the entry as a line for people.
func (d *Document) Line() string {
	who := d.By
	if d.System != "" {
		who = d.System + "@system"
	}
	if who == "" {
		who = "-"
	}
	parts := []string{strconv.FormatUint(d.Number, 10), d.At.UTC().Format("2006-01-02T15:04:05Z"), plain(who), d.Outcome, plain(d.Operation)}
	if d.Object != "" {
		parts = append(parts, plain(d.Object))
	}
	if d.Count > 1 {
		parts = append(parts, fmt.Sprintf("(%d times)", d.Count))
	}
	if d.Kind != "" {
		parts = append(parts, "["+d.Kind+"]")
	}
	if d.Details != "" {
		parts = append(parts, plain(d.Details))
	}
	return strings.Join(parts, "  ")
}

// plain quotes a text that a terminal would not show as it is.
func plain(text string) string {
	quoted := strconv.QuoteToGraphic(text)
	if quoted == `"`+text+`"` {
		return text
	}
	return quoted
}
