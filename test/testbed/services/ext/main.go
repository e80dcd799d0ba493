// ext answers external authorization and external processing on the public libraries, so that what gwproxy speaks is
// judged by someone else. It prints its address on the first line and ends when its input does.
//
// Authorization: a request with the header x-deny is refused; any other passes, edited. Processing: headers and trailers
// get marks, bodies come back in capitals, and x-immediate is answered at once.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	mode "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	auth "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	proc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	kind "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/structpb"
)

const permissionDenied = 7

func set(key, value string) *core.HeaderValueOption {
	return &core.HeaderValueOption{Header: &core.HeaderValue{Key: key, RawValue: []byte(value)}}
}

type authorizer struct {
	auth.UnimplementedAuthorizationServer
}

func (authorizer) Check(_ context.Context, request *auth.CheckRequest) (*auth.CheckResponse, error) {
	http := request.GetAttributes().GetRequest().GetHttp()
	if reason := http.GetHeaders()["x-deny"]; reason != "" {
		return &auth.CheckResponse{
			Status: &status.Status{Code: permissionDenied},
			HttpResponse: &auth.CheckResponse_DeniedResponse{DeniedResponse: &auth.DeniedHttpResponse{
				Status:  &kind.HttpStatus{Code: kind.StatusCode_TooManyRequests},
				Headers: []*core.HeaderValueOption{set("x-go-denied", reason)},
				Body:    "denied: " + reason,
			}},
		}, nil
	}
	metadata, err := structpb.NewStruct(map[string]any{"user": "gopher", "level": 3})
	if err != nil {
		return nil, err
	}
	seen := fmt.Sprintf("%s %s from %s, %d bytes", http.GetMethod(), http.GetPath(),
		request.GetAttributes().GetSource().GetAddress().GetSocketAddress().GetAddress(), len(http.GetBody()))
	return &auth.CheckResponse{
		Status: &status.Status{},
		HttpResponse: &auth.CheckResponse_OkResponse{OkResponse: &auth.OkHttpResponse{
			Headers:              []*core.HeaderValueOption{set("x-go-seen", seen)},
			HeadersToRemove:      []string{"x-secret"},
			ResponseHeadersToAdd: []*core.HeaderValueOption{set("x-go-checked", "yes")},
			QueryParametersToSet: []*core.QueryParameter{{Key: "checked", Value: "by go"}},
		}},
		DynamicMetadata: metadata,
	}, nil
}

type processor struct {
	proc.UnimplementedExternalProcessorServer
}

func (processor) Process(stream proc.ExternalProcessor_ProcessServer) error {
	var config *proc.ProtocolConfiguration
	for {
		request, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if config == nil {
			config = request.GetProtocolConfig()
		}
		if err := stream.Send(answer(request, config)); err != nil {
			return err
		}
	}
}

func answer(request *proc.ProcessingRequest, config *proc.ProtocolConfiguration) *proc.ProcessingResponse {
	switch part := request.GetRequest().(type) {
	case *proc.ProcessingRequest_RequestHeaders:
		if value(part.RequestHeaders.GetHeaders(), "x-immediate") != "" {
			return &proc.ProcessingResponse{Response: &proc.ProcessingResponse_ImmediateResponse{
				ImmediateResponse: &proc.ImmediateResponse{
					Status:  &kind.HttpStatus{Code: kind.StatusCode_Conflict},
					Headers: &proc.HeaderMutation{SetHeaders: []*core.HeaderValueOption{set("x-go-immediate", "yes")}},
					Body:    []byte("at once"),
				},
			}}
		}
		path := value(part.RequestHeaders.GetHeaders(), ":path")
		return &proc.ProcessingResponse{Response: &proc.ProcessingResponse_RequestHeaders{
			RequestHeaders: &proc.HeadersResponse{Response: marked("x-go-request", path)},
		}}
	case *proc.ProcessingRequest_ResponseHeaders:
		code := value(part.ResponseHeaders.GetHeaders(), ":status")
		return &proc.ProcessingResponse{Response: &proc.ProcessingResponse_ResponseHeaders{
			ResponseHeaders: &proc.HeadersResponse{Response: marked("x-go-response", code)},
		}}
	case *proc.ProcessingRequest_RequestBody:
		return &proc.ProcessingResponse{Response: &proc.ProcessingResponse_RequestBody{
			RequestBody: capitals(part.RequestBody, config.GetRequestBodyMode()),
		}}
	case *proc.ProcessingRequest_ResponseBody:
		return &proc.ProcessingResponse{Response: &proc.ProcessingResponse_ResponseBody{
			ResponseBody: capitals(part.ResponseBody, config.GetResponseBodyMode()),
		}}
	case *proc.ProcessingRequest_RequestTrailers:
		return &proc.ProcessingResponse{Response: &proc.ProcessingResponse_RequestTrailers{
			RequestTrailers: &proc.TrailersResponse{HeaderMutation: mark("x-go-trailer", "request")},
		}}
	default:
		return &proc.ProcessingResponse{Response: &proc.ProcessingResponse_ResponseTrailers{
			ResponseTrailers: &proc.TrailersResponse{HeaderMutation: mark("x-go-trailer", "response")},
		}}
	}
}

func mark(name, value string) *proc.HeaderMutation {
	return &proc.HeaderMutation{SetHeaders: []*core.HeaderValueOption{set(name, value)}}
}

func marked(name, value string) *proc.CommonResponse {
	return &proc.CommonResponse{HeaderMutation: mark(name, value)}
}

func capitals(part *proc.HttpBody, how mode.ProcessingMode_BodySendMode) *proc.BodyResponse {
	body := bytes.ToUpper(part.GetBody())
	mutation := &proc.BodyMutation{Mutation: &proc.BodyMutation_Body{Body: body}}
	if how == mode.ProcessingMode_FULL_DUPLEX_STREAMED {
		mutation = &proc.BodyMutation{Mutation: &proc.BodyMutation_StreamedResponse{
			StreamedResponse: &proc.StreamedBodyResponse{Body: body, EndOfStream: part.GetEndOfStream()},
		}}
	}
	return &proc.BodyResponse{Response: &proc.CommonResponse{BodyMutation: mutation}}
}

func value(headers *core.HeaderMap, name string) string {
	for _, header := range headers.GetHeaders() {
		if header.GetKey() == name {
			return string(header.GetRawValue())
		}
	}
	return ""
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	server := grpc.NewServer()
	auth.RegisterAuthorizationServer(server, authorizer{})
	proc.RegisterExternalProcessorServer(server, processor{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		server.Stop()
	}()
	fmt.Println(listener.Addr())
	if err := server.Serve(listener); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
