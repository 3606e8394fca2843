package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// settingFlags gives a command the flags of all settings but those that every verb
// has.
func settingFlags(cmd *cobra.Command, inherited ...string) {
	for i := range settings {
		s := &settings[i]
		if slices.Contains(inherited, s.name) {
			continue
		}
		flag := cmd.Flags().VarPF(&settingFlag{setting: s, text: s.usual}, s.name, "", s.what)
		switch {
		case s.kind.form == boolForm:
			flag.NoOptDefVal = "true"
			choices(cmd, s.name, "true", "false")
		case s.choices != nil:
			choices(cmd, s.name, s.choices...)
		case s.kind.word == fileKind.word:
			_ = cmd.RegisterFlagCompletionFunc(s.name, completeNames)
		case s.kind.word == folderKind.word:
			_ = cmd.RegisterFlagCompletionFunc(s.name, completeFolders)
		}
	}
}

// completeNames lets the shell complete names of files.
func completeNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// settingFlag is the value of a flag. A flag of a list or a table may be repeated.
type settingFlag struct {
	setting *setting
	text    string
	given   bool
}

func (f *settingFlag) String() string { return f.text }

// Type is what cobra's help prints behind the name.
func (f *settingFlag) Type() string {
	switch f.setting.kind.form {
	case boolForm:
		return "bool" // so that it may stand alone
	case listForm, tableForm:
		return f.setting.kind.word
	}
	return strings.ToLower(f.setting.kind.word)
}

func (f *settingFlag) Set(text string) error {
	if _, err := f.setting.read(text); err != nil {
		return err
	}
	if form := f.setting.kind.form; f.given && (form == listForm || form == tableForm) {
		text = f.text + " " + text
	}
	f.text, f.given = text, true
	return nil
}

// inFile returns the setting as it stands in the configuration file, for a value as
// it is written on the command line.
func (s *setting) inFile(text string) string {
	value, err := s.read(text)
	if err != nil {
		return ""
	}
	return strings.Join(s.lines(value), "; ")
}

// lines returns the setting with a value that was read, in TOML: a line, or for each
// entry of a table one.
func (s *setting) lines(value any) (lines []string) {
	key := s.name + " = "
	switch v := value.(type) {
	case []string:
		return []string{key + "[" + strings.Join(quoted(v), ", ") + "]"}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			lines = append(lines, s.name+"."+name+" = "+strconv.Quote(fmt.Sprint(v[name])))
		}
		return lines
	}
	text := plain(s, value)
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

// plain returns a value as people write it.
func plain(s *setting, value any) string {
	switch v := value.(type) {
	case time.Duration:
		return shortDuration(v)
	case int64:
		if s.kind.word == sizeKind.word {
			return shortSize(v)
		}
	case string:
		if s.kind.word == storeKind.word && v != "" {
			return redactURL(v)
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
