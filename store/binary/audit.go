package binary

import (
	"encoding/binary"

	"github.com/stele-id/stele"
)

// auditForm is the version of the form of audit entries.
const auditForm = 1

// AppendAudit appends an audit entry to b, without its number and time, which stores keep
// beside it.
func AppendAudit(b []byte, e *stele.AuditEntry) []byte {
	b = append(b, auditForm)
	for _, text := range auditNames(e) {
		b = appendText(b, *text)
	}
	b = appendText(b, e.Object)
	b = appendText(appendText(b, e.Namespace.Scheme), e.Namespace.Prefix)
	b = appendText(b, string(e.Outcome))
	b = append(b, byte(e.Kind))
	b = binary.AppendUvarint(b, e.Count)
	b = binary.AppendUvarint(b, e.Trimmed)
	return appendText(b, e.Details)
}

// MarshalAudit returns an audit entry's bytes, without its number and time.
func MarshalAudit(e *stele.AuditEntry) []byte { return AppendAudit(nil, e) }

// UnmarshalAudit reads an audit entry. It leaves number and time as they are.
func UnmarshalAudit(data []byte, e *stele.AuditEntry) error {
	d := decoder{rest: string(data)}
	if form := d.byte(); form != auditForm && d.err == nil {
		return &stele.Error{Op: "decode", Kind: stele.Internal, Err: stele.Messagef("audit.stored-form-unknown", "an audit entry of form {form}, which this program does not know", form)}
	}
	for _, text := range auditNames(e) {
		*text = d.text()
	}
	e.Object = d.text()
	e.Namespace = stele.NamespaceKey{Scheme: d.text(), Prefix: d.text()}
	e.Outcome = stele.AuditOutcome(d.text())
	e.Kind = stele.Kind(d.byte())
	e.Count = d.uvarint()
	e.Trimmed = d.uvarint()
	e.Details = d.text()
	return d.end("audit entry")
}

// auditNames returns the names of an entry in the order of the form.
func auditNames(e *stele.AuditEntry) [6]*string {
	return [...]*string{&e.By, &e.Token, &e.System, &e.Via, &e.Address, &e.Operation}
}
