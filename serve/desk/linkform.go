package desk

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/web/deskpage"
)

// maxLinkRows is how many rows of a list the form is read for; the registrar allows fewer.
const maxLinkRows = 200

// linkForm is how targets are checked, as an owner fills it in. Its fields are texts, right or wrong.
type linkForm struct {
	faults
	quota  string
	copies bool        // archived copies take the place of what is broken
	own    [][2]string // host, seconds
	pauses [][2]string // host, day
}

func parseLinkForm(values url.Values) *linkForm {
	f := &linkForm{quota: strings.TrimSpace(values.Get("quota")), copies: values.Has("fall-back")}
	read := func(list, second string) (rows [][2]string) {
		for i := range maxLinkRows {
			at := fmt.Sprintf("%s-%d-", list, i)
			if !values.Has(at + "host") {
				break
			}
			rows = append(rows, [2]string{strings.ToLower(strings.TrimSpace(values.Get(at + "host"))), strings.TrimSpace(values.Get(at + second))})
		}
		return rows
	}
	f.own, f.pauses = read("own", "gap"), read("pauses", "until")
	return f
}

func linkFormOf(l *registrar.LinkChecks) *linkForm {
	f := &linkForm{quota: number(uint64(max(l.Quota, 0))), copies: l.FallBack}
	for _, o := range l.Own {
		f.own = append(f.own, [2]string{o.Host, strconv.FormatFloat(o.Gap.Seconds(), 'f', -1, 64)})
	}
	for _, p := range l.Pauses {
		host := p.Host
		if host == "" {
			host = "*"
		}
		f.pauses = append(f.pauses, [2]string{host, p.Until.UTC().Format(time.DateOnly)})
	}
	return f
}

// settings returns what the form says, and notes what can't be read. Rows has the number of the row of each host and each pause, since empty rows
// are left out.
func (f *linkForm) settings(c *call) (l registrar.LinkChecks, rows map[string][]int) {
	rows = make(map[string][]int)
	l.FallBack = f.copies
	if f.quota != "" {
		n, err := strconv.Atoi(f.quota)
		if err != nil {
			f.note("quota", c.language.Problem(stele.Messagef("desk.not-a-number", `"{text}" is not a number from 0 to {most}`, f.quota, registrar.MaxCheckQuota)))
		}
		l.Quota = n
	}
	for i, row := range f.own {
		if row[0] == "" && row[1] == "" {
			continue
		}
		seconds, err := strconv.ParseFloat(strings.Replace(row[1], ",", ".", 1), 64)
		if err != nil || seconds < 0 || seconds > 86400 {
			f.note(fmt.Sprintf("own-%d-gap", i), c.language.Problem(stele.Messagef("desk.not-seconds", `"{text}" is not a number of seconds, such as 0.5`, row[1])))
			continue
		}
		l.Own, rows["own"] = append(l.Own, registrar.OwnHost{Host: row[0], Gap: time.Duration(seconds * float64(time.Second)).Round(time.Millisecond)}), append(rows["own"], i)
	}
	for i, row := range f.pauses {
		if row[0] == "" && row[1] == "" {
			continue
		}
		until, err := time.Parse(time.DateOnly, row[1])
		if err != nil {
			f.note(fmt.Sprintf("pauses-%d-until", i), c.language.Problem(stele.Messagef("desk.date-invalid", `"{text}" is not a date; write it as 2026-11-16`, row[1])))
			continue
		}
		if row[0] == "" {
			f.note(fmt.Sprintf("pauses-%d-host", i), c.language.Problem(stele.Messagef("desk.pause-of-what", "write the host that rests, or * for all hosts")))
			continue
		}
		l.Pauses, rows["pauses"] = append(l.Pauses, registrar.HostPause{Host: strings.TrimPrefix(row[0], "*"), Until: until}), append(rows["pauses"], i)
	}
	return l, rows
}

// linkPath is the place of a problem in the settings.
var linkPath = regexp.MustCompile(`^(own|pauses)(?:\[(\d+)\])?`)

// field returns the input that a problem of the settings is about.
func (f *linkForm) field(rows map[string][]int) func(path, code string) string {
	return func(path, code string) string {
		m := linkPath.FindStringSubmatch(path)
		switch {
		case path == "quota":
			return path
		case m == nil:
			return ""
		}
		n, _ := strconv.Atoi(m[2])
		if n >= len(rows[m[1]]) {
			return ""
		}
		if code == "links.pace-too-fast" {
			return fmt.Sprintf("%s-%d-gap", m[1], rows[m[1]][n])
		}
		return fmt.Sprintf("%s-%d-host", m[1], rows[m[1]][n])
	}
}

// fill writes the form into the view of the page, with a row to add to each list.
func (f *linkForm) fill(v *deskpage.LinkSettings) {
	v.Quota, v.Copies = f.input("quota", f.quota), f.copies
	withEmpty := func(rows [][2]string) [][2]string {
		if n := len(rows); n > 0 && rows[n-1] == [2]string{} {
			return rows
		}
		return append(rows, [2]string{})
	}
	for i, row := range withEmpty(f.own) {
		at := fmt.Sprintf("own-%d-", i)
		v.Own = append(v.Own, deskpage.LinkOwn{Number: i, Host: f.input(at+"host", row[0]), Gap: f.input(at+"gap", row[1])})
	}
	for i, row := range withEmpty(f.pauses) {
		at := fmt.Sprintf("pauses-%d-", i)
		v.Pauses = append(v.Pauses, deskpage.LinkPause{Number: i, Host: f.input(at+"host", row[0]), Until: f.input(at+"until", row[1])})
	}
}

// keepTimes gives pauses whose day is the same as before the time of the day that they had: the form shows days.
func keepTimes(pauses, before []registrar.HostPause) []registrar.HostPause {
	for i := range pauses {
		for _, b := range before {
			if p := &pauses[i]; b.Host == p.Host && b.Until.UTC().Format(time.DateOnly) == p.Until.Format(time.DateOnly) {
				p.Until = b.Until
			}
		}
	}
	return pauses
}

// saveLinks changes how the targets of a namespace are checked, or tells what is wrong with the form.
func (c *call) saveLinks() error {
	if err := c.readForm(); err != nil {
		return err
	}
	ns, role, err := c.linkSpace(c.r.PostForm)
	if err != nil {
		return err
	}
	do := c.r.PostForm.Get("do")
	f := parseLinkForm(c.r.PostForm)
	want, rows := f.settings(c)
	if !f.any() {
		_, err = c.h.o.Registrar.SetLinkChecks(c.ctx, ns.Key(), func(l *registrar.LinkChecks) {
			l.On = (l.On || do == "on") && do != "off"
			if c.r.PostForm.Has("quota") { // the button alone leaves the rest as it is
				l.Quota, l.FallBack, l.Own, l.Pauses = want.Quota, want.FallBack, want.Own, keepTimes(want.Pauses, l.Pauses)
			}
		})
		if err == nil {
			done := "saved"
			if do == "on" || do == "off" {
				done = "links-" + do
			}
			c.redirect(linksPath(ns.Key(), "links", "done", done))
			return nil
		}
		if kind := stele.KindOf(err); kind != stele.Invalid {
			return err
		}
		if err := f.judge(c, err, f.field(rows)); err != nil {
			return err
		}
	}
	return c.linksPage(http.StatusUnprocessableEntity, ns, role, f)
}
