"""Signs requests with botocore, as a second opinion on our signatures. test/testbed/botocore.ts runs it.

Reads one request for each line of standard input, as JSON, and prints the header Authorization for each.
"""
import base64
import datetime
import json
import sys

import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

OF_SIGNATURES = {"authorization", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256"}

for line in sys.stdin:
    given = json.loads(line)
    time = datetime.datetime.strptime(given["time"], "%Y%m%dT%H%M%SZ")
    botocore.auth.get_current_datetime = lambda time=time: time
    url = "http://" + given["host"] + given["path"]
    request = AWSRequest(method=given["method"], url=url, data=base64.b64decode(given["body"]))
    for name, value in given["headers"]:
        if name.lower() not in OF_SIGNATURES:
            request.headers.add_header(name, value)
    credentials = Credentials(given["accessKeyId"], given["secretAccessKey"], given["sessionToken"] or None)
    signer = botocore.auth.S3SigV4Auth if given["service"] == "s3" else botocore.auth.SigV4Auth
    signer(credentials, given["service"], given["region"]).add_auth(request)
    print(request.headers["Authorization"])
