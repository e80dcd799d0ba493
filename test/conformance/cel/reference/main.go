// celreference is the second opinion on expressions. `celreference cases` prints the official test data of the
// language as JSON; `celreference evaluate` answers expressions, one JSON object a line, with cel-go.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	_ "cel.dev/expr/conformance/proto2"
	_ "cel.dev/expr/conformance/proto3"
	test "cel.dev/expr/conformance/test"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 2 && args[0] == "cases" {
		return printCases(args[1])
	}
	if len(args) == 1 && args[0] == "evaluate" {
		return answer(os.Stdin, os.Stdout)
	}
	return fmt.Errorf("usage: celreference cases FOLDER | celreference evaluate")
}

func printCases(folder string) error {
	names, err := filepath.Glob(filepath.Join(folder, "*.textproto"))
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("%s: no test data", folder)
	}
	files := make([]json.RawMessage, 0, len(names))
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file := &test.SimpleTestFile{}
		if err := prototext.Unmarshal(text, file); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		data, err := protojson.Marshal(file)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		files = append(files, data)
	}
	return json.NewEncoder(os.Stdout).Encode(files)
}
