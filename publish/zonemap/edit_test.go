package zonemap

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
)

func TestNewRecord(t *testing.T) {
	for _, tt := range []struct {
		name, kind, data string
		want             stele.ZoneRecord
		ok               bool
	}{
		{"@", "mx", "10  MX.example.org.", stele.ZoneRecord{Name: "zone.example.", TTL: 60, Type: stele.RecordMX, Data: "10 mx.example.org."}, true},
		{"WWW", "A", "192.0.2.80", stele.ZoneRecord{Name: "www.zone.example.", TTL: 60, Type: stele.RecordA, Data: "192.0.2.80"}, true},
		{"Other.example.", "A", "192.0.2.80", stele.ZoneRecord{Name: "other.example.", TTL: 60, Type: stele.RecordA, Data: "192.0.2.80"}, true},
		{"@", "txt", `v=spf1  mx \ -all`, stele.ZoneRecord{Name: "zone.example.", TTL: 60, Type: stele.RecordTXT, Data: `"v=spf1  mx \\ -all"`}, true},
		{"@", "txt", `"a" "b"`, stele.ZoneRecord{Name: "zone.example.", TTL: 60, Type: stele.RecordTXT, Data: `"a" "b"`}, true},
		{"@", "A", "not an address", stele.ZoneRecord{Name: "zone.example.", TTL: 60, Type: stele.RecordA, Data: "not an address"}, false},
	} {
		r, ok := NewRecord("zone.example.", tt.name, 60, tt.kind, tt.data)
		if diff := cmp.Diff(tt.want, r); ok != tt.ok || diff != "" {
			t.Errorf("%s %s %s: %t\n%s", tt.name, tt.kind, tt.data, ok, diff)
		}
	}
}

func TestEditRecords(t *testing.T) {
	record := func(name string, ttl uint32, data string) stele.ZoneRecord {
		return stele.ZoneRecord{Name: name, TTL: ttl, Type: stele.RecordA, Data: data}
	}
	var list []stele.ZoneRecord
	for _, r := range []stele.ZoneRecord{record("a.", 1, "192.0.2.1"), record("b.", 2, "192.0.2.1"), record("a.", 3, "192.0.2.2"), record("a.", 3, "192.0.2.2")} {
		list = AddRecord(list, r)
	}
	want := []stele.ZoneRecord{record("a.", 3, "192.0.2.1"), record("a.", 3, "192.0.2.2"), record("b.", 2, "192.0.2.1")}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want[1:], RemoveRecords(list, record("a.", 9, "192.0.2.1"), false)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want[2:], RemoveRecords(list, record("a.", 9, ""), true)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("the list was changed: %s", diff)
	}
}
