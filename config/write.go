package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele/internal/terminal"
	"github.com/stele-id/stele/store/postgres"
)

// InFile returns the setting as it stands in the configuration file, for a value as
// it is written on the command line.
func (s *Setting) InFile(text string) string {
	value, err := s.Read(text)
	if err != nil {
		return ""
	}
	return strings.Join(s.Lines(value), "; ")
}

// Lines returns the setting with a value that was read, in TOML: a line, or for each
// entry of a table one.
func (s *Setting) Lines(value any) (lines []string) {
	key := s.Name + " = "
	switch v := value.(type) {
	case []string:
		return []string{key + "[" + strings.Join(quoted(v), ", ") + "]"}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			lines = append(lines, s.Name+"."+name+" = "+strconv.Quote(fmt.Sprint(v[name])))
		}
		return lines
	}
	text := s.Plain(value)
	if s.kind.form == textForm {
		text = strconv.Quote(text)
	}
	return []string{key + text}
}

// quoted returns texts in quotation marks.
func quoted(texts []string) (out []string) {
	for _, text := range texts {
		out = append(out, strconv.Quote(text))
	}
	return out
}

// Plain returns a value as people write it, without passwords.
func (s *Setting) Plain(value any) string {
	switch v := value.(type) {
	case time.Duration:
		return shortDuration(v)
	case int64:
		if s.kind.word == sizeKind.word {
			return shortSize(v)
		}
	case string:
		if s.kind.word == storeKind.word && v != "" {
			return postgres.RedactURL(v)
		}
	}
	return fmt.Sprint(value)
}

// shortDuration writes a duration without units that are zero: 1h, not 1h0m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// shortSize writes a size in the largest unit that fits.
func shortSize(n int64) string {
	for _, unit := range []string{"GiB", "GB", "MiB", "MB", "KiB", "kB"} {
		if size := sizeUnits[strings.ToLower(unit)]; n > 0 && n%size == 0 {
			return strconv.FormatInt(n/size, 10) + unit
		}
	}
	return strconv.FormatInt(n, 10)
}

// Values says which values a setting can have.
func (s *Setting) Values() string {
	if s.Choices != nil {
		return strings.Join(s.Choices, ", ")
	}
	return s.Word()
}

// Markdown returns all settings as a table for a page.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| setting | is | default | for | example |\n|---|---|---|---|---|\n")
	for _, s := range All() {
		usual := ""
		if s.Usual != "" {
			usual = "`" + strings.ReplaceAll(s.Usual, ",", "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | `%s` |\n", s.Name, s.Values(), usual, s.What, s.InFile(s.Example))
	}
	return b.String()
}

// Object returns all values, for a program.
func (c *Config) Object() map[string]any {
	object := map[string]any{}
	for _, s := range All() {
		object[s.Name] = c.Value(s.Name)
		if s.IsText() {
			object[s.Name] = s.Plain(c.Value(s.Name))
		}
	}
	return object
}

// Text returns all values as a configuration file, with a remark on each line that says where
// its value comes from.
func (c *Config) Text() string {
	var b strings.Builder
	for _, s := range All() {
		lines := s.Lines(c.Value(s.Name))
		if len(lines) == 0 {
			lines = []string{"# " + s.InFile(s.Example)}
		}
		for _, line := range lines {
			fmt.Fprintf(&b, "%s  # %s\n", line, terminal.Printable(c.Origin(s.Name)))
		}
	}
	return b.String()
}
