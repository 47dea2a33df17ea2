package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// resultOutput is how a command puts out its results: as a table or JSON on standard output and,
// if that is wanted, as CSV in a file. JSON and CSV have the run's runInfo in each result.
type resultOutput struct {
	json bool
	csv  string // file
	file *reportFile
}

// resultFlags adds --json and --csv. what --json prints is "an array of objects", say.
func (o *resultOutput) resultFlags(cmd *cobra.Command, what string) {
	cmd.Flags().BoolVar(&o.json, "json", false, "print "+what+" instead of a table")
	cmd.Flags().StringVar(&o.csv, "csv", "", "`file` for the results as CSV, too: a line for each object of --json, with its keys as columns")
}

// openResults finds before the work that the file cannot be written. discardResults follows.
func (o *resultOutput) openResults() (err error) {
	o.file, err = newReportFile("csv", o.csv)
	return err
}

func (o *resultOutput) discardResults() {
	if o.file != nil {
		o.file.discard()
	}
}

// putResults prints results, an object or a list of them, and writes the file.
func (o *resultOutput) putResults(w io.Writer, run runInfo, results any, table func(io.Writer) error) error {
	objects, list, err := withRun(run, results)
	if err != nil {
		return err
	}
	switch {
	case !o.json:
		err = table(w)
	case list:
		err = writeJSON(w, objects)
	default:
		err = writeJSON(w, objects[0])
	}
	if o.file == nil {
		return err
	}
	return errors.Join(err, o.file.write(func(w io.Writer) error { return writeCSV(w, objects) }))
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// runKey is the key of an object's runInfo.
const runKey = "run"

// withRun returns results as JSON objects, each with the run, and whether they are a list.
func withRun(run runInfo, results any) (objects []json.RawMessage, list bool, err error) {
	text, err := json.Marshal(results)
	if err != nil {
		return nil, false, err
	}
	about, err := json.Marshal(run)
	if err != nil {
		return nil, false, err
	}
	if list = text[0] == '['; list {
		err = json.Unmarshal(text, &objects)
	} else {
		objects = []json.RawMessage{text}
	}
	if string(text) == "null" {
		objects, list = nil, true
	}
	for i, o := range objects {
		comma := ","
		if string(o) == "{}" {
			comma = ""
		}
		objects[i] = slices.Concat(bytes.TrimSuffix(o, []byte("}")), []byte(comma+`"`+runKey+`":`), about, []byte("}"))
	}
	if objects == nil {
		objects = []json.RawMessage{}
	}
	return objects, list, err
}

// writeCSV writes objects as lines below a head. The columns are the keys of all, in the order of
// their first appearance; those of objects within have a path, such as run.commit. Lists of
// numbers or words are one cell with blanks between; other lists are JSON.
func writeCSV(w io.Writer, objects []json.RawMessage) error {
	var head []string
	lines := make([]map[string]string, len(objects))
	for i, o := range objects {
		lines[i] = make(map[string]string)
		d := json.NewDecoder(bytes.NewReader(o))
		d.UseNumber()
		err := eachCell(d, "", func(column, cell string) {
			if !slices.Contains(head, column) {
				head = append(head, column)
			}
			lines[i][column] = cell
		})
		if err != nil {
			return err
		}
	}
	c := csv.NewWriter(w)
	c.Write(head)
	for _, line := range lines {
		row := make([]string, len(head))
		for i, column := range head {
			row[i] = line[column]
		}
		c.Write(row)
	}
	c.Flush()
	return c.Error()
}

// eachCell calls cell for every value of the object that is next.
func eachCell(d *json.Decoder, path string, cell func(column, value string)) error {
	if _, err := d.Token(); err != nil { // {
		return err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		column := strings.TrimPrefix(path+"."+fmt.Sprint(key), ".")
		if value[0] == '{' {
			inner := json.NewDecoder(bytes.NewReader(value))
			inner.UseNumber()
			if err := eachCell(inner, column, cell); err != nil {
				return err
			}
			continue
		}
		text, err := csvCell(value)
		if err != nil {
			return err
		}
		cell(column, text)
	}
	_, err := d.Token() // }
	return err
}

func csvCell(value json.RawMessage) (string, error) {
	switch value[0] {
	case '"':
		var s string
		err := json.Unmarshal(value, &s)
		return s, err
	case 'n':
		return "", nil
	case '[':
		var list []json.RawMessage
		if err := json.Unmarshal(value, &list); err != nil {
			return "", err
		}
		if slices.ContainsFunc(list, func(v json.RawMessage) bool { return v[0] == '{' || v[0] == '[' }) {
			return string(value), nil
		}
		var words []string
		for _, v := range list {
			word, err := csvCell(v)
			if err != nil {
				return "", err
			}
			words = append(words, word)
		}
		return strings.Join(words, " "), nil
	}
	return string(value), nil
}
