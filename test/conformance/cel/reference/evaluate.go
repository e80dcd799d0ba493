package main

import (
	"bufio"
	"encoding/json"
	"io"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"
	expr "cel.dev/expr"
	"google.golang.org/protobuf/encoding/protojson"
)

// question is one expression with its variables as the JSON form of cel.expr.Value.
type question struct {
	Expression string                     `json:"expression"`
	Variables  map[string]json.RawMessage `json:"variables"`
}

// answerLine has exactly one of the three members.
type answerLine struct {
	Value   json.RawMessage `json:"value,omitempty"`
	Refused string          `json:"refused,omitempty"`
	Failed  string          `json:"failed,omitempty"`
}

const longestLine = 16 << 20

// answer reads one question a line and writes one answer a line, in the same order.
func answer(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, longestLine)
	writer := bufio.NewWriter(out)
	encoder := json.NewEncoder(writer)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			return err
		}
		result, err := evaluate(asked)
		if err != nil {
			return err
		}
		if err := encoder.Encode(result); err != nil {
			return err
		}
		if err := writer.Flush(); err != nil {
			return err
		}
	}
	return lines.Err()
}

// evaluate returns an error only for a broken question; what the expression does is part of the answer.
func evaluate(asked question) (answerLine, error) {
	options := []cel.EnvOption{
		cel.OptionalTypes(), cel.CrossTypeNumericComparisons(true), cel.DefaultUTCTimeZone(true),
		ext.Strings(), ext.Math(), ext.Encoders(), ext.Bindings(), ext.TwoVarComprehensions(),
	}
	variables := map[string]any{}
	for name, text := range asked.Variables {
		value := &expr.Value{}
		if err := protojson.Unmarshal(text, value); err != nil {
			return answerLine{}, err
		}
		native, err := cel.ProtoAsValue(types.DefaultTypeAdapter, value)
		if err != nil {
			return answerLine{}, err
		}
		variables[name] = native
		options = append(options, cel.Variable(name, cel.DynType))
	}
	environment, err := cel.NewEnv(options...)
	if err != nil {
		return answerLine{}, err
	}
	tree, issues := environment.Compile(asked.Expression)
	if issues.Err() != nil {
		return answerLine{Refused: issues.Err().Error()}, nil
	}
	program, err := environment.Program(tree)
	if err != nil {
		return answerLine{Refused: err.Error()}, nil
	}
	value, _, err := program.Eval(variables)
	if err != nil {
		return answerLine{Failed: err.Error()}, nil
	}
	return printed(value)
}

func printed(value ref.Val) (answerLine, error) {
	message, err := cel.ValueAsProto(value)
	if err != nil {
		return answerLine{}, err
	}
	text, err := protojson.Marshal(message)
	return answerLine{Value: text}, err
}
